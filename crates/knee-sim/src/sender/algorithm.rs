//! Calls the congestion control algorithm; logs and counts its actions.

use super::tally::Tally;
use knee_cc::{Ack, Conn, Controller, Event, Params};
use knee_model::{Call, CallRecord};

/// An algorithm on one simulated connection.
pub(crate) struct Algorithm {
    pub(crate) controller: Controller,
    pub(super) uses_random: bool,
    /// The calls. Few runs log them: it takes one word of those that do not.
    #[allow(clippy::box_collection)]
    pub(crate) trace: Option<Box<Vec<CallRecord>>>,
}

impl Algorithm {
    pub(super) fn new(params: Params, conn: &mut Conn, trace: bool) -> Self {
        let uses_random = params.algorithm().uses_random();
        let before = trace.then_some(*conn);
        let controller = Controller::new(params, conn);
        let mut new = Self { controller, uses_random, trace: trace.then(Box::default) };
        new.log(Call::Init, 0, &Ack::default(), before, conn, 0);
        new
    }

    /// Copies the connection before a call, if calls are logged.
    #[inline]
    fn before(&self, conn: &Conn) -> Option<Conn> {
        self.trace.is_some().then_some(*conn)
    }

    /// Logs a call, if there is a view `before` it.
    #[inline(always)]
    fn log(
        &mut self,
        call: Call,
        event: u32,
        ack: &Ack,
        before: Option<Conn>,
        after: &Conn,
        result: u32,
    ) {
        if let Some(before) = before {
            let observed = self.controller.observe();
            let (ack, after, state) = (*ack, *after, *self.controller.state());
            let call = CallRecord { call, event, ack, before, after, result, observed, state };
            self.keep(call);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, call: CallRecord) {
        if let Some(trace) = &mut self.trace {
            trace.push(call);
        }
    }

    /// Gives the algorithm a sample, before losses are judged (contract, call 1).
    #[inline(always)]
    pub(super) fn on_rtt(&mut self, conn: &mut Conn, ack: &Ack, counters: &mut Tally) {
        let before = self.before(conn);
        self.controller.on_rtt(conn, ack);
        counters.count(Call::OnRtt, conn, 0);
        self.log(Call::OnRtt, 0, ack, before, conn, 0);
    }

    /// Lets the algorithm grow the window (contract, call 3).
    #[inline(always)]
    pub(super) fn on_ack(&mut self, conn: &mut Conn, ack: &Ack, counters: &mut Tally) {
        let before = self.before(conn);
        self.controller.on_ack(conn, ack);
        counters.count(Call::OnAck, conn, 0);
        self.log(Call::OnAck, 0, ack, before, conn, 0);
    }

    /// Asks for the threshold and sets it; the host owns that order (contract, call 2).
    pub(super) fn ssthresh(&mut self, conn: &mut Conn, counters: &mut Tally) {
        let before = self.before(conn);
        let result = self.controller.ssthresh(conn);
        counters.count(Call::Ssthresh, conn, result);
        self.log(Call::Ssthresh, 0, &Ack::default(), before, conn, result);
        conn.ssthresh_pkts = result;
    }

    pub(super) fn on_event(&mut self, conn: &mut Conn, event: Event) {
        let before = self.before(conn);
        self.controller.on_event(conn, event);
        self.log(Call::OnEvent, event as u32, &Ack::default(), before, conn, 0);
    }

    /// Asks for the window after an unnecessary reduction and sets it.
    pub(super) fn undo(&mut self, conn: &mut Conn) {
        let before = self.before(conn);
        let result = self.controller.undo(conn);
        self.log(Call::Undo, 0, &Ack::default(), before, conn, result);
        conn.cwnd_pkts = result;
    }
}
