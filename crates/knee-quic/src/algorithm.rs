//! Calls the algorithm and informs the observer.

use knee_cc::{Ack, Call, CallRecord, Conn, Controller, Event, OBSERVE_N, Params, State};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Receives every call of an algorithm with its inputs and outputs: a trace consists of these calls, and
/// [`CallRecord::again`] repeats them.
pub trait Observer: Send + Sync {
    /// A controller called its algorithm. Controllers of one [`crate::CongestionControl`] are
    /// numbered from 0 in the order in which they were built; the first call of each is `init`,
    /// except that quinn may clone a controller when a path changes: the clone continues from the
    /// original's state at that time, under a number of its own.
    fn called(&self, controller: u64, call: &CallRecord);
}

/// Number of the next controller.
pub(crate) type Numbers = Arc<AtomicU64>;

/// An algorithm on one path of a connection.
pub(crate) struct Algorithm {
    controller: Controller,
    uses_random: bool,
    watch: Option<Watch>,
}

struct Watch {
    observer: Arc<dyn Observer>,
    /// None of a clone that has made no call yet: quinn also clones to show the state.
    number: Option<u64>,
    numbers: Numbers,
    /// A call that may yet be undone.
    held: Option<CallRecord>,
}

impl Algorithm {
    pub(crate) fn new(
        params: Params,
        conn: &mut Conn,
        observer: Option<Arc<dyn Observer>>,
        number: u64,
        numbers: &Numbers,
    ) -> Self {
        let uses_random = params.algorithm().uses_random();
        let before = *conn;
        let controller = Controller::new(params, conn);
        let watch = observer.map(|observer| Watch {
            observer,
            number: Some(number),
            numbers: numbers.clone(),
            held: None,
        });
        let mut new = Self { controller, uses_random, watch };
        new.tell(Call::Init, 0, &Ack::default(), before, conn, 0);
        new
    }

    pub(crate) fn uses_random(&self) -> bool {
        self.uses_random
    }

    pub(crate) fn params(&self) -> &Params {
        self.controller.params()
    }

    pub(crate) fn observe(&self) -> [u32; OBSERVE_N] {
        self.controller.observe()
    }

    pub(crate) fn on_rtt(&mut self, conn: &mut Conn, ack: &Ack) {
        let before = *conn;
        self.controller.on_rtt(conn, ack);
        self.tell(Call::OnRtt, 0, ack, before, conn, 0);
    }

    /// The observer receives it with the next call or [`Self::flush`]; until then
    /// [`Self::take_back`] undoes it. Returns the state before it.
    pub(crate) fn on_ack(&mut self, conn: &mut Conn, ack: &Ack) -> State {
        self.flush();
        let (before, state) = (*conn, *self.controller.state());
        self.controller.on_ack(conn, ack);
        if self.watch.is_some() {
            let record = self.record(Call::OnAck, 0, ack, before, conn, 0);
            if let Some(watch) = &mut self.watch {
                watch.held = Some(record);
            }
        }
        state
    }

    /// Undoes the `on_ack` that gave `state`.
    pub(crate) fn take_back(&mut self, state: State) {
        self.controller.restore(state);
        if let Some(watch) = &mut self.watch {
            watch.held = None;
        }
    }

    /// The threshold, which becomes the connection's (contract, call 2).
    pub(crate) fn ssthresh(&mut self, conn: &mut Conn) {
        let before = *conn;
        let result = self.controller.ssthresh(conn);
        self.tell(Call::Ssthresh, 0, &Ack::default(), before, conn, result);
        conn.ssthresh_pkts = result;
    }

    pub(crate) fn on_event(&mut self, conn: &mut Conn, event: Event) {
        let before = *conn;
        self.controller.on_event(conn, event);
        self.tell(Call::OnEvent, event as u32, &Ack::default(), before, conn, 0);
    }

    /// Reports the last call: it is final.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.flush();
        }
    }

    #[inline]
    fn tell(&mut self, call: Call, event: u32, ack: &Ack, before: Conn, after: &Conn, result: u32) {
        if self.watch.is_some() {
            let record = self.record(call, event, ack, before, after, result);
            if let Some(watch) = &mut self.watch {
                watch.flush();
                watch.tell(&record);
            }
        }
    }

    fn record(
        &self,
        call: Call,
        event: u32,
        ack: &Ack,
        before: Conn,
        after: &Conn,
        result: u32,
    ) -> CallRecord {
        let (observed, state) = (self.controller.observe(), *self.controller.state());
        CallRecord { call, event, ack: *ack, before, after: *after, result, observed, state }
    }
}

impl Clone for Algorithm {
    fn clone(&self) -> Self {
        let watch = self.watch.as_ref().map(|watch| Watch {
            observer: watch.observer.clone(),
            number: None,
            numbers: watch.numbers.clone(),
            held: None,
        });
        Self { controller: self.controller.clone(), uses_random: self.uses_random, watch }
    }
}

impl Watch {
    fn flush(&mut self) {
        if let Some(record) = self.held.take() {
            self.tell(&record);
        }
    }

    fn tell(&mut self, record: &CallRecord) {
        let numbers = &self.numbers;
        let number = *self.number.get_or_insert_with(|| numbers.fetch_add(1, Ordering::Relaxed));
        self.observer.called(number, record);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.flush();
    }
}
