//! Calls of an algorithm as data, for traces and replay.

use crate::{Ack, Call, Conn, Controller, Event, OBSERVE_N, Params, State};
use serde::{Deserialize, Serialize};

/// One call of an algorithm: all that went in, all that came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Function.
    pub call: Call,
    /// Event number, for `on_event`.
    pub event: u32,
    /// ACK, for `on_rtt` and `on_ack`.
    pub ack: Ack,
    /// Connection before the call.
    pub before: Conn,
    /// Connection after the call.
    pub after: Conn,
    /// Result, for `ssthresh` and `undo`.
    pub result: u32,
    /// Internals after the call.
    pub observed: [u32; OBSERVE_N],
    /// State after the call.
    pub state: State,
}

impl CallRecord {
    /// Makes the call again: the same inputs to an algorithm with these parameters and, unless it
    /// is `init`, this state. None if there is no such event.
    pub fn again(&self, params: &Params, state: State) -> Option<Self> {
        let mut after = self.before;
        let mut result = 0;
        let mut controller = match self.call {
            Call::Init => Controller::new(params.clone(), &mut after),
            _ => Controller::resume(params.clone(), state),
        };
        match self.call {
            Call::Init => {}
            Call::OnRtt => controller.on_rtt(&mut after, &self.ack),
            Call::OnAck => controller.on_ack(&mut after, &self.ack),
            Call::Ssthresh => result = controller.ssthresh(&mut after),
            Call::OnEvent => {
                controller.on_event(&mut after, *Event::ALL.get(self.event as usize)?);
            }
            Call::Undo => result = controller.undo(&mut after),
        }
        let (observed, state) = (controller.observe(), *controller.state());
        Some(Self { after, result, observed, state, ..*self })
    }
}
