//! A run that pauses, so that its algorithms can be steered from outside.

use crate::{check, connection::Tcp, open, packet::Store};
use knee_cc::{Conn, State, contain};
use knee_model::{HostError, Ns, Progress, RunRecord, RunSpec};
use knee_net::{ScriptedLoss, VirtualRun};
use std::sync::Arc;

/// A simulation that advances step by step. Between steps, the state of an algorithm can be read and
/// replaced; it uses the new state from the next ACK on. The record is that of [`crate::run`].
pub struct Stepped {
    run: VirtualRun<Arc<RunSpec>, fn(Progress), Tcp>,
}

impl Stepped {
    /// The run of `spec` at its start.
    ///
    /// # Errors
    /// See [`crate::run`].
    pub fn new(spec: Arc<RunSpec>) -> Result<Self, HostError> {
        check(&spec)?;
        let run = contain(|| {
            let of = spec.clone();
            let open = |index: usize, tcp: &_| open(&of, index, tcp);
            VirtualRun::begin(spec, Store::default(), (|_| ()) as fn(Progress), open)
        })?;
        Ok(Self { run })
    }

    /// Loses the packets that `script` lists, of those that the first hop is offered, instead of bursts.
    pub fn script_loss(&mut self, script: ScriptedLoss) {
        self.run.network.path.script_loss(script);
    }

    /// Advances to `until_ns`, at most to the end.
    ///
    /// # Errors
    /// An algorithm breaks the contract; the run cannot continue then.
    pub fn advance(&mut self, until_ns: Ns) -> Result<(), HostError> {
        let Ok(()) = contain(|| self.run.advance(until_ns))?;
        Ok(())
    }

    /// The present time.
    pub fn now_ns(&self) -> Ns {
        self.run.network.now_ns()
    }

    /// The connection of a flow as its algorithm saw it last, and the algorithm's state. None for a flow
    /// without feedback.
    pub fn flow(&mut self, flow: usize) -> Option<(Conn, State)> {
        let tcb = &self.run.connection(flow)?.sender.tcb;
        Some((tcb.conn, *tcb.algorithm.controller.state()))
    }

    /// Replaces the state of the algorithm of a flow.
    pub fn set_state(&mut self, flow: usize, state: State) {
        if let Some(tcp) = self.run.connection(flow) {
            tcp.sender.tcb.algorithm.controller.restore(state);
        }
    }

    /// The record of a run that is at its end.
    pub fn finish(self) -> RunRecord {
        let Ok(record) = self.run.finish();
        record
    }
}
