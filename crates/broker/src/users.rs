//! Who may connect, and how they show who they are.

use crate::config::User;
use hopline_driver::engine::Authenticator;
use hopline_driver::engine::sasl::{
    ANONYMOUS, Anonymous, Exchange, PLAIN, PlainServer, SCRAM_SHA_256, ScramKeys, ScramServer,
    same_secret,
};
use hopline_driver::engine::wire::Symbol;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Rounds of SCRAM, the least that RFC 7677 allows: the passwords are in the configuration, and a
/// start with many users is to be quick.
const ITERATIONS: u32 = 4096;

/// The configured users.
#[derive(Debug)]
pub(crate) struct Users {
    known: Arc<Known>,
    anonymous: bool,
    plain: PlainServer,
}

struct Known {
    users: HashMap<String, (String, ScramKeys)>,
    /// Makes salts, for those who exist and those who don't.
    secret: [u8; 16],
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.users.keys()).finish()
    }
}

impl Known {
    fn has(&self, name: &str, password: &str) -> bool {
        let known = self.users.get(name);
        known.is_some_and(|(right, _)| same_secret(right.as_bytes(), password.as_bytes()))
    }

    fn keys(&self, name: &str) -> ScramKeys {
        match self.users.get(name) {
            Some((_, keys)) => keys.clone(),
            None => ScramKeys::decoy(&self.secret, name, ITERATIONS),
        }
    }
}

impl Users {
    pub(crate) fn new(users: &[User], anonymous: bool) -> Self {
        let secret = *Uuid::new_v4().as_bytes();
        let keyed = |user: &User| {
            let salt = ScramKeys::salt_for(&secret, &user.name);
            let keys = ScramKeys::derive(&user.password, &salt, ITERATIONS);
            (user.name.clone(), (user.password.clone(), keys))
        };
        let known = Arc::new(Known { users: users.iter().map(keyed).collect(), secret });
        let judge = known.clone();
        let plain = PlainServer::new(move |name, password| judge.has(name, password));
        Self { known, anonymous, plain }
    }
}

impl Authenticator for Users {
    fn mechanisms(&self) -> Vec<Symbol> {
        let mut offered = match self.known.users.is_empty() {
            true => Vec::new(),
            false => vec![SCRAM_SHA_256, PLAIN],
        };
        // An offer of nothing is not allowed (5.3.3.1); nobody knows a password of nobody.
        if self.anonymous || offered.is_empty() {
            offered.push(if self.anonymous { ANONYMOUS } else { PLAIN });
        }
        offered
    }

    fn start(&self, mechanism: &str) -> Option<Box<dyn Exchange>> {
        if ANONYMOUS == *mechanism && self.anonymous {
            Some(Box::new(Anonymous))
        } else if PLAIN == *mechanism {
            Some(Box::new(self.plain.clone()))
        } else if SCRAM_SHA_256 == *mechanism && !self.known.users.is_empty() {
            let nonce = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            let known = self.known.clone();
            Some(Box::new(ScramServer::new(nonce, move |name| known.keys(name))))
        } else {
            None
        }
    }

    fn allows_no_sasl(&self) -> bool {
        self.anonymous
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_driver::engine::sasl::Step;
    use hopline_driver::engine::wire::definitions::SaslCode;

    fn users(anonymous: bool, names: &[&str]) -> Users {
        let named = |name: &&str| User { name: (*name).into(), password: format!("{name}-pw") };
        Users::new(&names.iter().map(named).collect::<Vec<_>>(), anonymous)
    }

    fn offer(users: &Users) -> Vec<String> {
        users.mechanisms().iter().map(|symbol| symbol.as_str().to_owned()).collect()
    }

    #[test]
    fn what_is_offered_can_be_started_and_nothing_else() {
        let cases: [(bool, &[&str], &[&str]); 4] = [
            (true, &[], &["ANONYMOUS"]),
            (true, &["ann"], &["SCRAM-SHA-256", "PLAIN", "ANONYMOUS"]),
            (false, &["ann"], &["SCRAM-SHA-256", "PLAIN"]),
            (false, &[], &["PLAIN"]),
        ];
        for (anonymous, names, offered) in cases {
            let users = users(anonymous, names);
            assert_eq!(offer(&users), offered);
            for mechanism in offered {
                assert!(users.start(mechanism).is_some(), "{mechanism}");
            }
            for mechanism in ["EXTERNAL", "GSSAPI", "SCRAM-SHA-1", "plain", ""] {
                assert!(users.start(mechanism).is_none(), "{mechanism}");
            }
            assert_eq!(users.allows_no_sasl(), anonymous);
        }
        assert!(users(false, &["ann"]).start("ANONYMOUS").is_none());
    }

    #[test]
    fn plain_takes_the_right_password_of_the_right_user() {
        let users = users(false, &["ann", "bob"]);
        let said = |response: &[u8]| users.start("PLAIN").map(|mut e| e.step(Some(response)));
        assert_eq!(said(b"\0ann\0ann-pw"), Some(Step::LetIn("ann".into())));
        assert_eq!(said(b"bob\0bob\0bob-pw"), Some(Step::LetIn("bob".into())));
        for wrong in [
            &b"\0ann\0bob-pw"[..],
            b"\0ann\0",
            b"\0eve\0ann-pw",
            b"bob\0ann\0ann-pw",
            b"\0\0",
            b"\xff",
        ] {
            assert_eq!(said(wrong), Some(Step::Refused(SaslCode::Auth)), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let users = users(true, &["ann"]);
        assert!(!format!("{users:?}").contains("ann-pw"));
    }
}
