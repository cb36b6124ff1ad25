use crate::engine_support::login::SERVER_NONCE;
use crate::engine_support::{init, open};
use hopline_engine::wire::Symbol;
use hopline_engine::wire::definitions::SaslCode;
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{
    Frame, SaslChallenge, SaslMechanisms, SaslOutcome, SaslResponse,
};

/// The exchange of RFC 7677, section 3.
const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const PROOF: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const SIGNATURE: &str = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

/// Exchanges that succeed, and some that do not, with each end.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut exchanges = to_servers();
    exchanges.append(&mut to_clients());
    exchanges.push(b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
    let all = (0..6).flat_map(|setup| exchanges.iter().map(move |it| (setup, it)));
    all.map(|(setup, exchange)| [&[setup, 30][..], exchange].concat()).collect()
}

fn to_servers() -> Vec<Vec<u8>> {
    let [amqp, sasl] = headers();
    let open = put(&open());
    let [right, wrong] = [b"\0ada\0lace", b"\0ada\0last"].map(|it| put(&init("PLAIN", Some(it))));
    let first = put(&init("SCRAM-SHA-256", Some(FIRST)));
    let last = format!("c=biws,r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},p={PROOF}");
    let [last, seen] = [last, String::new()].map(|it| put(&SaslResponse { response: it.into() }));
    vec![
        [&amqp[..], &open].concat(),
        [&sasl[..], &right, &amqp, &open].concat(),
        [&sasl[..], &wrong, &amqp, &open].concat(),
        [&sasl[..], &first, &last, &seen, &amqp, &open].concat(),
        [&sasl[..], &put(&init("PLAIN", None)), &seen].concat(),
        [&sasl[..], &put(&init("ANONYMOUS", Some(b"trace"))), &amqp, &open].concat(),
    ]
}

fn to_clients() -> Vec<Vec<u8>> {
    let [amqp, sasl] = headers();
    let open = put(&open());
    let offer = |names: &[&'static str]| {
        let names = names.iter().map(|name| Symbol::from_static(name)).collect();
        put(&SaslMechanisms { sasl_server_mechanisms: names })
    };
    let outcome = |code| put(&SaslOutcome { code, additional_data: None });
    let (ok, refused) = (outcome(SaslCode::Ok), outcome(SaslCode::Auth));
    let salted = format!("r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
    let signed = format!("v={SIGNATURE}");
    let [salted, signed] = [salted, signed].map(|it| put(&SaslChallenge { challenge: it.into() }));
    vec![
        [&sasl[..], &offer(&["PLAIN", "ANONYMOUS"]), &ok, &amqp, &open].concat(),
        [&sasl[..], &offer(&["SCRAM-SHA-256"]), &salted, &signed, &ok, &amqp, &open].concat(),
        [&sasl[..], &offer(&["PLAIN"]), &refused].concat(),
        [&sasl[..], &offer(&["EXTERNAL"])].concat(),
    ]
}

fn headers() -> [[u8; 8]; 2] {
    [ProtocolHeader::Amqp, ProtocolHeader::Sasl].map(ProtocolHeader::octets)
}

fn put(frame: &impl Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.put(&mut out, 0);
    out
}
