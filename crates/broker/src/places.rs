//! Places for connections: how many there may be, in all and from one address.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

/// The bits of an IPv6 address that belong to the network: whoever has one address of a network
/// has all of them.
const IPV6_NETWORK: u128 = !0 << 64;

/// The places that are taken.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    max_per_address: usize,
    taken: Cell<usize>,
    by_address: RefCell<HashMap<IpAddr, usize>>,
}

/// Why there is no place. The text names the setting.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("there are as many connections as limits.connections allows")]
    All,
    #[error("there are as many connections from there as limits.connections_per_address allows")]
    Address,
}

/// The place of one connection, from its acceptance until its socket is closed.
#[derive(Debug)]
pub(crate) struct Place {
    places: Rc<Places>,
    address: IpAddr,
}

impl Places {
    pub(crate) fn new(max: usize, max_per_address: usize) -> Self {
        let (taken, by_address) = (Cell::new(0), RefCell::default());
        Self { max, max_per_address, taken, by_address }
    }

    /// A place for a connection from `address`, if there is one.
    pub(crate) fn take(self: &Rc<Self>, address: IpAddr) -> Result<Place, Full> {
        if self.taken.get() >= self.max {
            return Err(Full::All);
        }
        let address = network(address);
        let mut by_address = self.by_address.borrow_mut();
        let of_address = by_address.get(&address).copied().unwrap_or(0);
        if of_address >= self.max_per_address {
            return Err(Full::Address);
        }
        by_address.insert(address, of_address + 1);
        self.taken.set(self.taken.get() + 1);
        Ok(Place { places: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let places = &self.places;
        places.taken.set(places.taken.get().saturating_sub(1));
        let mut by_address = places.by_address.borrow_mut();
        let left = by_address.get(&self.address).map_or(0, |taken| taken.saturating_sub(1));
        match left {
            0 => by_address.remove(&self.address),
            _ => by_address.insert(self.address, left),
        };
    }
}

/// What counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & IPV6_NETWORK).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Rc<Places>, address: &str) -> Result<Place, Full> {
        places.take(address.parse().unwrap())
    }

    #[test]
    fn a_place_is_free_again_once_it_is_left() {
        let places = Rc::new(Places::new(3, 2));
        let one = take(&places, "192.0.2.1").unwrap();
        let two = take(&places, "192.0.2.1").unwrap();
        assert_eq!(take(&places, "192.0.2.1").unwrap_err(), Full::Address);
        let three = take(&places, "192.0.2.2").unwrap();
        assert_eq!(take(&places, "192.0.2.3").unwrap_err(), Full::All);
        drop(three);
        assert_eq!(take(&places, "192.0.2.1").unwrap_err(), Full::Address);
        drop(one);
        let again = take(&places, "192.0.2.1").unwrap();
        drop((two, again));
        assert!(places.by_address.borrow().is_empty(), "nothing is kept of who has left");
        assert_eq!(places.taken.get(), 0);
    }

    #[test]
    fn all_of_an_ipv6_network_and_both_forms_of_ipv4_are_one_address() {
        let places = Rc::new(Places::new(10, 1));
        for (first, same, other) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:2", "2001:db8:0:1::1"),
            ("192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2"),
        ] {
            let _first = take(&places, first).unwrap();
            assert_eq!(take(&places, same).unwrap_err(), Full::Address);
            take(&places, other).unwrap();
        }
    }
}
