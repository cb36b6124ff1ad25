//! SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.
//!
//! ```text
//! C: n,,n=USER,r=CNONCE                       S: r=CNONCE SNONCE,s=SALT,i=ITERATIONS
//! C: c=biws,r=CNONCE SNONCE,p=PROOF           S: v=SIGNATURE
//! ```
//!
//! Nonces come from the caller: there is no source of chance here. Passwords beyond ASCII are
//! taken as they are, without the normal forms of SASLprep.

use super::{Exchange, Step, same_secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hopline_wire::definitions::SaslCode;
use sha2::{Digest, Sha256};
use std::fmt;

/// Rounds that a server may ask a client for: some 0.3 s of work.
const ITERATIONS_MAX: u32 = 1_000_000;
/// Fewer are not worth the name (RFC 7677, 4).
const ITERATIONS_MIN: u32 = 4096;

type Key = [u8; 32];

fn hmac(key: &[u8], data: &[u8]) -> Key {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Key::default() };
    mac.update(data);
    mac.finalize().into_bytes().into()
}

fn hash(data: &[u8]) -> Key {
    Sha256::digest(data).into()
}

fn xor(a: &Key, b: &Key) -> Key {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn salted(password: &str, salt: &[u8], iterations: u32) -> Key {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), salt, iterations)
}

/// What a server keeps of a password: enough to judge a proof, not enough to make one.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    salt: Vec<u8>,
    iterations: u32,
    stored: Key,
    server: Key,
}

impl ScramKeys {
    /// The keys of a password. Takes a millisecond or two for 4,096 iterations, the least that
    /// RFC 7677 allows.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> Self {
        let salted = salted(password, salt, iterations);
        Self {
            salt: salt.to_vec(),
            iterations,
            stored: hash(&hmac(&salted, b"Client Key")),
            server: hmac(&salted, b"Server Key"),
        }
    }

    /// Keys that no password has, for a user who does not exist: who asks can't tell the two
    /// apart. The same secret and user give the same salt as [`ScramKeys::salt_for`].
    pub fn decoy(secret: &[u8], user: &str, iterations: u32) -> Self {
        let of = |what: &[u8]| hmac(secret, &[what, user.as_bytes()].concat());
        let salt = Self::salt_for(secret, user);
        Self { salt, iterations, stored: of(b"stored:"), server: of(b"server:") }
    }

    /// A salt for a user.
    pub fn salt_for(secret: &[u8], user: &str) -> Vec<u8> {
        hmac(secret, &[b"salt:", user.as_bytes()].concat())[..16].to_vec()
    }
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramKeys").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// Finds a user's keys.
type Find = dyn Fn(&str) -> ScramKeys + Send;

/// The server's side of SCRAM-SHA-256.
pub struct ScramServer {
    nonce: String,
    find: Box<Find>,
    state: ServerState,
}

#[derive(Default)]
enum ServerState {
    #[default]
    First,
    Final {
        user: String,
        keys: ScramKeys,
        header: String,
        nonce: String,
        so_far: String,
    },
    /// The proof was right; the client has yet to say that it has seen ours.
    Proven(String),
}

impl ScramServer {
    /// `nonce`: as for the client, fresh for each exchange. `find` gives [`ScramKeys::decoy`] for
    /// those who don't exist.
    pub fn new(nonce: String, find: impl Fn(&str) -> ScramKeys + Send + 'static) -> Self {
        Self { nonce, find: Box::new(find), state: ServerState::First }
    }

    fn first(&mut self, message: &str) -> Option<Bytes> {
        let (header, bare) = split_header(message)?;
        let mut fields = bare.split(',');
        let user = unescape(fields.next()?.strip_prefix("n=")?)?;
        let nonce = fields.next()?.strip_prefix("r=")?;
        let authzid = header.split(',').nth(1)?;
        let is_other = !authzid.is_empty() && unescape(authzid.strip_prefix("a=")?)? != user;
        if is_other || nonce.is_empty() || !nonce.bytes().all(|c| c.is_ascii_graphic()) {
            return None;
        }
        let keys = (self.find)(&user);
        let nonce = format!("{nonce}{}", self.nonce);
        let answer = format!("r={nonce},s={},i={}", BASE64.encode(&keys.salt), keys.iterations);
        let so_far = format!("{bare},{answer}");
        self.state = ServerState::Final { user, keys, header: header.to_owned(), nonce, so_far };
        Some(answer.into())
    }

    /// Judges the proof; `None`: it is wrong.
    fn last(&mut self, message: &str) -> Option<Bytes> {
        let ServerState::Final { user, keys, header, nonce, so_far } =
            std::mem::take(&mut self.state)
        else {
            return None;
        };
        let (unproven, proof) = message.rsplit_once(",p=")?;
        let mut fields = unproven.split(',');
        let bound = BASE64.decode(fields.next()?.strip_prefix("c=")?).ok()?;
        if bound != header.as_bytes() || fields.next()?.strip_prefix("r=")? != nonce {
            return None;
        }
        let proof: Key = BASE64.decode(proof).ok()?.try_into().ok()?;
        let signed = format!("{so_far},{unproven}");
        let client_key = xor(&proof, &hmac(&keys.stored, signed.as_bytes()));
        if !same_secret(&hash(&client_key), &keys.stored) {
            return None;
        }
        self.state = ServerState::Proven(user);
        let signature = hmac(&keys.server, signed.as_bytes());
        Some(format!("v={}", BASE64.encode(signature)).into())
    }
}

impl fmt::Debug for ScramServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramServer")
    }
}

impl Exchange for ScramServer {
    /// Our signature goes out as a challenge, which all clients take; some don't look for it in
    /// the outcome.
    fn step(&mut self, response: Option<&[u8]>) -> Step {
        if let ServerState::Proven(user) = &mut self.state {
            return Step::LetIn(std::mem::take(user));
        }
        let Some(response) = response else { return Step::Challenge(Bytes::new()) };
        let answer = std::str::from_utf8(response).ok().and_then(|message| match &self.state {
            ServerState::First => self.first(message),
            _ => self.last(message),
        });
        answer.map_or(Step::Refused(SaslCode::Auth), Step::Challenge)
    }
}

/// The GS2 header with its last comma, and the rest (RFC 5802, 7). Channel binding is not offered,
/// so not to be had.
fn split_header(message: &str) -> Option<(&str, &str)> {
    if !(message.starts_with("n,") || message.starts_with("y,")) {
        return None;
    }
    let end = 2 + message.get(2..)?.find(',')? + 1;
    message.split_at_checked(end)
}

fn escape(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

fn unescape(name: &str) -> Option<String> {
    let mut parts = name.split('=');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (c, rest) = match part.split_at_checked(2)? {
            ("3D", rest) => ('=', rest),
            ("2C", rest) => (',', rest),
            _ => return None,
        };
        out.push(c);
        out.push_str(rest);
    }
    (!out.is_empty()).then_some(out)
}

/// The client's side of SCRAM-SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ScramClient {
    password: String,
    bare: String,
    nonce: String,
    state: ClientState,
}

#[derive(Clone, PartialEq, Eq)]
enum ClientState {
    First,
    /// The proof is sent; this is what the server must show.
    Proof(Key),
    Done,
}

impl fmt::Debug for ScramClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramClient")
    }
}

impl ScramClient {
    pub(crate) fn new(user: &str, password: &str, nonce: &str) -> Self {
        let bare = format!("n={},r={nonce}", escape(user));
        let (password, nonce) = (password.to_owned(), nonce.to_owned());
        Self { password, bare, nonce, state: ClientState::First }
    }

    pub(crate) fn initial_response(&self) -> Bytes {
        format!("n,,{}", self.bare).into()
    }

    /// Responds to a challenge; `Err`: why this server is not to be trusted.
    pub(crate) fn respond(&mut self, challenge: &[u8]) -> Result<Bytes, &'static str> {
        match &self.state {
            ClientState::First => {
                let message = std::str::from_utf8(challenge).ok();
                message.and_then(|message| self.prove(message)).ok_or("its challenge is malformed")
            }
            ClientState::Proof(expected) => {
                let given = challenge.strip_prefix(b"v=").and_then(|v| BASE64.decode(v).ok());
                if !given.is_some_and(|given| same_secret(&given, expected)) {
                    return Err("it does not know the password");
                }
                self.state = ClientState::Done;
                Ok(Bytes::new())
            }
            ClientState::Done => Err("it goes on challenging"),
        }
    }

    fn prove(&mut self, message: &str) -> Option<Bytes> {
        let mut fields = message.split(',');
        let nonce = fields.next()?.strip_prefix("r=")?;
        let salt = BASE64.decode(fields.next()?.strip_prefix("s=")?).ok()?;
        let iterations = fields.next()?.strip_prefix("i=")?.parse().ok()?;
        let is_sound = (ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations)
            && nonce.len() > self.nonce.len()
            && nonce.starts_with(&self.nonce);
        if !is_sound {
            return None;
        }
        let salted = salted(&self.password, &salt, iterations);
        let unproven = format!("c=biws,r={nonce}");
        let signed = format!("{},{message},{unproven}", self.bare);
        let client_key = hmac(&salted, b"Client Key");
        let proof = xor(&client_key, &hmac(&hash(&client_key), signed.as_bytes()));
        let server_key = hmac(&salted, b"Server Key");
        self.state = ClientState::Proof(hmac(&server_key, signed.as_bytes()));
        Some(format!("{unproven},p={}", BASE64.encode(proof)).into())
    }

    /// Whether an outcome of ok may be believed: the server has shown, there or before, that it
    /// knows the password.
    pub(crate) fn is_proven(&mut self, additional_data: Option<&[u8]>) -> bool {
        match (&self.state, additional_data) {
            (ClientState::Done, _) => true,
            (ClientState::Proof(_), Some(data)) => self.respond(data).is_ok(),
            _ => false,
        }
    }
}
