use crate::engine_support::open;
use hopline_engine::wire::Symbol;
use hopline_engine::wire::definitions::SaslCode;
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{Frame, SaslInit, SaslMechanisms, SaslOutcome};

/// Exchanges that succeed, and some that do not, with each end.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let [amqp, sasl] = [ProtocolHeader::Amqp, ProtocolHeader::Sasl].map(|it| it.octets().to_vec());
    let open = put(&open());
    let offer = |names: &[&'static str]| {
        let names = names.iter().map(|name| Symbol::from_static(name)).collect();
        put(&SaslMechanisms { sasl_server_mechanisms: names })
    };
    let [init, wrong] = [b"\0u\0p", b"\0u\0q"].map(|response: &[u8; 4]| {
        let initial_response = Some(response.to_vec().into());
        let mechanism = Symbol::from_static("PLAIN");
        put(&SaslInit { mechanism, initial_response, hostname: Some("host".into()) })
    });
    let outcome = |code| put(&SaslOutcome { code, additional_data: None });
    let exchanges = [
        [&sasl[..], &init, &amqp, &open].concat(),
        [&sasl[..], &wrong, &amqp, &open].concat(),
        [&amqp[..], &open].concat(),
        [&sasl[..], &offer(&["PLAIN", "ANONYMOUS"]), &outcome(SaslCode::Ok), &amqp, &open].concat(),
        [&sasl[..], &offer(&["EXTERNAL"]), &outcome(SaslCode::Auth)].concat(),
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
    ];
    let all = (0..5).flat_map(|setup| exchanges.iter().map(move |it| (setup, it)));
    all.map(|(setup, exchange)| [&[setup, 30][..], exchange].concat()).collect()
}

fn put(frame: &impl Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.put(&mut out, 0);
    out
}
