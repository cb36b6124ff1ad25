//! No frame is larger than the peer takes (part 2, 2.7.1): what is only for people, or optional, is
//! left out first; what can't be said at all is an error at the level above.

use super::Connection;
use crate::fault::CommandError;
use hopline_wire::codec::Encode;
use hopline_wire::performative::Frame;
use hopline_wire::{AmqpError, DeliveryState, condition};

/// Octets of a text that fits in the smallest frames with all that may stand around it.
const TEXT_MAX: usize = 200;

/// Octets of a condition that does so.
const CONDITION_MAX: usize = 64;

/// Octets of a disposition around its state.
const DISPOSITION_MAX: usize = 40;

impl Connection {
    /// Appends a frame, unless the peer does not take one of its size.
    pub(super) fn put_if_fits(&mut self, frame: &impl Frame, channel: u16) -> bool {
        let tail = self.outbox.tail();
        let at = tail.len();
        frame.put(tail, channel);
        let fits = tail.len() - at <= self.peer.frame_size;
        if !fits {
            tail.truncate(at);
        }
        fits
    }

    /// Appends a frame that says why, in as many words as fit.
    pub(super) fn put_reason<F: Frame>(
        &mut self,
        channel: u16,
        mut error: Option<Box<AmqpError>>,
        frame: impl Fn(Option<Box<AmqpError>>) -> F,
    ) {
        while !self.put_if_fits(&frame(error.clone()), channel) && shorten(&mut error) {}
    }

    /// A state as it can be told: the reason of a rejection may have to be shorter.
    pub(super) fn fit_state(&self, state: DeliveryState) -> Result<DeliveryState, CommandError> {
        let room = self.peer.frame_size.saturating_sub(DISPOSITION_MAX);
        let fits = |state: &DeliveryState| {
            let mut octets = Vec::new();
            state.encode(&mut octets);
            octets.len() <= room
        };
        match state {
            DeliveryState::Accepted | DeliveryState::Released | DeliveryState::Received(_) => {
                Ok(state)
            }
            DeliveryState::Rejected(mut rejected) => loop {
                let state = DeliveryState::Rejected(rejected.clone());
                if fits(&state) || !shorten(&mut rejected.error) {
                    break Ok(state);
                }
            },
            state if fits(&state) => Ok(state),
            _ => Err(CommandError::FrameSize),
        }
    }
}

/// Leaves out what can be missed most; `false`: nothing is left.
fn shorten(error: &mut Option<Box<AmqpError>>) -> bool {
    let Some(told) = error else { return false };
    if told.info.take().is_some() {
        return true;
    }
    match &mut told.description {
        Some(text) if text.len() > TEXT_MAX => {
            let end = (0..=TEXT_MAX).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or_default());
        }
        Some(_) => told.description = None,
        None if told.condition.as_str().len() > CONDITION_MAX => {
            told.condition = condition::INTERNAL_ERROR;
        }
        None => *error = None,
    }
    true
}

pub(super) fn too_small(what: &str) -> AmqpError {
    let text = format!("the peer's max-frame-size is too small for {what}");
    AmqpError::new(condition::FRAME_SIZE_TOO_SMALL, text)
}
