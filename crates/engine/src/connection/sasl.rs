//! SASL frames (part 5, 5.3.2).
//!
//! ```text
//! client                       server
//!                         <--  sasl-mechanisms
//! sasl-init               -->
//!                         <--  sasl-challenge   )
//! sasl-response           -->                   ) as often as the mechanism asks for
//!                         <--  sasl-outcome
//! ```

use super::handshake::out_of_place;
use super::{Connection, Reading};
use crate::config::Side;
use crate::fault::Fault;
use crate::sasl::{ANONYMOUS, ClientSasl, Exchange, PLAIN, SCRAM_SHA_256, ScramClient, Step};
use bytes::Bytes;
use hopline_wire::condition;
use hopline_wire::definitions::SaslCode;
use hopline_wire::frame::ProtocolHeader;
use hopline_wire::performative::{
    SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslPerformative, SaslResponse,
};

/// Challenges of one exchange, whatever the mechanism.
const ROUNDS_MAX: u8 = 8;

/// The exchange that is under way.
#[derive(Debug, Default)]
pub(super) enum Sasl {
    /// None has begun.
    #[default]
    Idle,
    /// Ours to judge, and how many challenges it may still make.
    Server(Box<dyn Exchange>, u8),
    /// The server knows all that it needs.
    Told,
    /// We prove that we know a password.
    Scram(ScramClient),
}

impl Connection {
    pub(super) fn sasl_frame(&mut self, body: &[u8]) -> Result<(), Fault> {
        let (performative, _) = SaslPerformative::decode(body)?;
        match (&self.side, performative, std::mem::take(&mut self.sasl)) {
            (Side::Server(authenticator), SaslPerformative::SaslInit(init), Sasl::Idle) => {
                match authenticator.start(init.mechanism.as_str()) {
                    Some(exchange) => {
                        self.judge(exchange, ROUNDS_MAX, init.initial_response.as_deref())
                    }
                    None => self.refuse_login(SaslCode::Auth),
                }
            }
            (
                Side::Server(_),
                SaslPerformative::SaslResponse(response),
                Sasl::Server(exchange, rounds),
            ) => self.judge(exchange, rounds, Some(&response.response)),
            (Side::Client(sasl), SaslPerformative::SaslMechanisms(offer), Sasl::Idle) => {
                let (chosen, mut init) = choose(sasl, &offer)?;
                init.hostname.clone_from(&self.config.hostname);
                self.sasl = chosen;
                self.put(&init, 0);
                Ok(())
            }
            (
                Side::Client(_),
                SaslPerformative::SaslChallenge(challenge),
                Sasl::Scram(mut scram),
            ) => {
                let response = scram.respond(&challenge.challenge).map_err(distrust)?;
                self.put(&SaslResponse { response }, 0);
                self.sasl = Sasl::Scram(scram);
                Ok(())
            }
            (
                Side::Client(_),
                SaslPerformative::SaslOutcome(outcome),
                sasl @ (Sasl::Told | Sasl::Scram(_)),
            ) => self.sasl_outcome(&outcome, sasl),
            _ => Err(out_of_place("a SASL frame that is not due")),
        }
    }

    fn judge(
        &mut self,
        mut exchange: Box<dyn Exchange>,
        rounds: u8,
        response: Option<&[u8]>,
    ) -> Result<(), Fault> {
        match exchange.step(response) {
            Step::Challenge(challenge) if rounds > 0 => {
                self.put(&SaslChallenge { challenge }, 0);
                self.sasl = Sasl::Server(exchange, rounds - 1);
                Ok(())
            }
            Step::Challenge(_) => self.refuse_login(SaslCode::Auth),
            Step::LetIn(user) => {
                self.put(&SaslOutcome { code: SaslCode::Ok, additional_data: None }, 0);
                self.user = Some(user);
                self.reading = Reading::AmqpHeader;
                Ok(())
            }
            Step::Refused(code) => self.refuse_login(code),
        }
    }

    fn refuse_login(&mut self, code: SaslCode) -> Result<(), Fault> {
        self.put(&SaslOutcome { code, additional_data: None }, 0);
        Err(Fault::connection(condition::UNAUTHORIZED_ACCESS, "authentication failed"))
    }

    fn sasl_outcome(&mut self, outcome: &SaslOutcome, sasl: Sasl) -> Result<(), Fault> {
        if outcome.code != SaslCode::Ok {
            return Err(Fault::connection(condition::UNAUTHORIZED_ACCESS, why_not(outcome.code)));
        }
        if let Sasl::Scram(mut scram) = sasl
            && !scram.is_proven(outcome.additional_data.as_deref())
        {
            return Err(distrust("it has not shown that it knows the password"));
        }
        self.put_header(ProtocolHeader::Amqp);
        self.reading = Reading::AmqpHeader;
        if !self.put_open() {
            self.give_up_open();
        }
        Ok(())
    }
}

/// A refusal, and whether it is of use to try again (5.3.3.6).
fn why_not(code: SaslCode) -> &'static str {
    match code {
        SaslCode::SysTemp => "the server can't check credentials now (sys-temp): try again later",
        SaslCode::Sys => "the server can't check credentials (sys)",
        SaslCode::SysPerm => {
            "the server can't check credentials (sys-perm): its set-up is at fault"
        }
        _ => "the server refused the credentials (auth): check user and password",
    }
}

fn distrust(why: &str) -> Fault {
    let text = format!("the server is not to be trusted: {why}");
    Fault::connection(condition::UNAUTHORIZED_ACCESS, text)
}

fn choose(sasl: &ClientSasl, offer: &SaslMechanisms) -> Result<(Sasl, SaslInit), Fault> {
    let offered = &offer.sasl_server_mechanisms;
    let (mechanism, sasl, response) = match sasl {
        ClientSasl::Password { user, password, nonce } if offered.contains(&SCRAM_SHA_256) => {
            let scram = ScramClient::new(user, password, nonce);
            let first = scram.initial_response();
            (SCRAM_SHA_256, Sasl::Scram(scram), first)
        }
        ClientSasl::Password { user, password, .. } => {
            (PLAIN, Sasl::Told, Bytes::from(format!("\0{user}\0{password}")))
        }
        _ => (ANONYMOUS, Sasl::Told, Bytes::from_static(b"hopline")),
    };
    if !offered.contains(&mechanism) {
        let text =
            format!("the server offers {offered:?} but not {mechanism}: give other credentials");
        return Err(Fault::connection(condition::UNAUTHORIZED_ACCESS, text));
    }
    Ok((sasl, SaslInit { mechanism, initial_response: Some(response), hostname: None }))
}
