use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::Error;
use crate::socket::host_port;

/// The port of plain AMQP (IANA `amqp`).
const PORT: u16 = 5672;
/// The port of AMQP within TLS (IANA `amqps`).
const TLS_PORT: u16 = 5671;

/// What Display must encode in an address: `/` may stand there as it is.
const ADDRESS: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'"').add(b'<').add(b'>');
/// What Display must encode in a user name.
const USER: &AsciiSet = &ADDRESS.add(b'/').add(b':').add(b'@').add(b'?').add(b'#').add(b'~');

/// Where to connect to, as whom, and which node is meant there:
/// `amqp[s]://[user[:password]@]host[:port][/address]`.
///
/// User, password and address are percent-decoded. All after the first `/` is the address, a `?`
/// or `#` included, since nodes may be named so. A `~` before the host means: listen there.
///
/// Neither Display nor Debug shows the password.
#[derive(Clone, Eq, PartialEq)]
pub struct Url {
    /// `amqps`: AMQP within TLS.
    pub tls: bool,
    /// A `~` stands before the host: wait for peers there instead of connecting.
    pub listen: bool,
    /// The user to authenticate as (SASL PLAIN); without one, SASL ANONYMOUS.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// A name or IP address; of IPv6 without the brackets.
    pub host: String,
    /// 1 to 65535, where to listen also 0 (any free port). Default: 5672, with TLS 5671.
    pub port: u16,
    /// The node to send to or receive from; never empty.
    pub address: Option<String>,
}

impl Url {
    /// HOST:PORT, an IPv6 address in brackets, as [`listen`](crate::listen) takes it.
    pub fn host_port(&self) -> String {
        host_port(&self.host, self.port)
    }
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or(fault("scheme", "is missing; begin with amqp:// or amqps://"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "amqp" => false,
            "amqps" => true,
            _ => return Err(fault("scheme", "is neither amqp nor amqps")),
        };
        let (authority, address) = rest.split_once('/').unwrap_or((rest, ""));
        let (userinfo, location) = match authority.rsplit_once('@') {
            Some((userinfo, location)) => (Some(userinfo), location),
            None => (None, authority),
        };
        let (user, password) = userinfo.map(parse_userinfo).transpose()?.unwrap_or_default();
        let (listen, location) = match location.strip_prefix('~') {
            Some(location) => (true, location),
            None => (false, location),
        };
        let (host, port) = split_port(location)?;
        let default = if tls { TLS_PORT } else { PORT };
        Ok(Url {
            tls,
            listen,
            user,
            password,
            host: parse_host(host)?,
            port: port.map_or(Ok(default), |port| parse_port(port, listen))?,
            address: Some(decode("address", address)?).filter(|address| !address.is_empty()),
        })
    }
}

fn fault(part: &'static str, problem: &'static str) -> Error {
    Error::Url { part, problem }
}

fn parse_userinfo(text: &str) -> Result<(Option<String>, Option<String>), Error> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(decode("password", password)?)),
        None => (text, None),
    };
    let user = decode("user", user)?;
    if user.is_empty() {
        return Err(fault("user", "is empty; leave out all up to the `@`, or name one"));
    }
    // SASL PLAIN separates its fields by NUL (RFC 4616, section 2).
    if user.contains('\0') || password.as_ref().is_some_and(|password| password.contains('\0')) {
        return Err(fault("user or password", "contains a NUL, which SASL PLAIN cannot carry"));
    }
    Ok((Some(user), password))
}

/// The host, with the brackets of an IPv6 address, and the text of the port.
fn split_port(location: &str) -> Result<(&str, Option<&str>), Error> {
    let (host, rest) = match location.find(']') {
        Some(end) => location.split_at(end + 1),
        None if location.matches(':').count() > 1 => {
            return Err(fault(
                "host",
                "has more than one `:`; write an IPv6 address in [brackets]",
            ));
        }
        None => location.split_at(location.find(':').unwrap_or(location.len())),
    };
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(fault("port", "must follow the `]` after a `:`")),
    }
}

fn parse_port(text: &str, listen: bool) -> Result<u16, Error> {
    let digits = text.bytes().all(|octet| octet.is_ascii_digit());
    match text.parse() {
        Ok(0) if !listen => Err(fault("port", "is 0, which nobody can connect to")),
        Ok(port) if digits => Ok(port),
        _ => Err(fault(
            "port",
            "is no number from 1 to 65535 (`/`, `:` and `@` within user or password must be \
             written %2F, %3A and %40)",
        )),
    }
}

fn parse_host(text: &str) -> Result<String, Error> {
    if text.is_empty() {
        return Err(fault("host", "is missing; name one, such as localhost"));
    }
    if let Some(rest) = text.strip_prefix('[') {
        // A zone, as in `fe80::1%eth0`, is for the resolver to judge.
        let literal = rest.strip_suffix(']').unwrap_or_default();
        let (address, _zone) = literal.split_once('%').unwrap_or((literal, ""));
        return match address.parse::<Ipv6Addr>() {
            Ok(_) => Ok(literal.to_owned()),
            Err(_) => Err(fault("host", "is no IPv6 address in brackets, such as [::1]")),
        };
    }
    if text.chars().all(|c| c.is_alphanumeric() || "-._".contains(c)) {
        Ok(text.to_owned())
    } else {
        Err(fault("host", "contains a character that no host name has"))
    }
}

/// Strict, since a stray `%` is most often a password that wasn't encoded.
fn decode(part: &'static str, text: &str) -> Result<String, Error> {
    let is_hex = |digits: &str| digits.bytes().all(|octet| octet.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(|rest| rest.get(..2).is_some_and(is_hex)) {
        return Err(fault(part, "has a `%` without two hexadecimal digits; write %25 for a `%`"));
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => Err(fault(part, "is not UTF-8 once percent-decoded")),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "amqps://" } else { "amqp://" })?;
        if let Some(user) = &self.user {
            let password = if self.password.is_some() { ":***" } else { "" };
            write!(f, "{}{password}@", utf8_percent_encode(user, USER))?;
        }
        let tilde = if self.listen { "~" } else { "" };
        write!(f, "{tilde}{}", self.host_port())?;
        match &self.address {
            Some(address) => write!(f, "/{}", utf8_percent_encode(address, ADDRESS)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}
