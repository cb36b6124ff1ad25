//! Tests of connections over real sockets: one program for all, as each costs a link.

mod held;
mod socket_options;
mod tls;
mod url;
