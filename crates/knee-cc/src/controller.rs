//! One connection's instance of an algorithm.

use crate::{
    Algorithm, Call, Event, OBSERVE_N, Params, State,
    ffi::{Ack, Conn, Window},
};
#[cfg(can_load)]
use crate::{
    contract::About,
    guard::{Guarded, signals},
};
#[cfg(can_load)]
use std::ptr;
use std::{
    ffi::{CStr, c_char, c_void},
    ops::RangeInclusive,
};

/// An algorithm's state on one connection. Calls are pure: same state, parameters, connection and
/// ACK give the same result on any host.
#[derive(Clone, Debug)]
pub struct Controller {
    params: Params,
    state: State,
}

/// Calls a function, that of an algorithm which is not built in under guard.
macro_rules! call {
    ($self:ident, $call:expr, $about:expr, $guard:ident, $function:expr, $conn:ident
     $(, $argument:expr)*) => {{
        #[cfg(can_load)]
        match $self.guarded($call.name()) {
            // SAFETY: see `Controller::new`.
            None => unsafe { ($function)($conn $(, $argument)*) },
            Some(guarded) => {
                let signal = match guarded.callee() {
                    Some(callee) => {
                        let Controller { params, state } = &mut *$self;
                        let params = params.words();
                        guarded.succeeded(callee.call($call, $about, params, state, $conn));
                        0
                    }
                    // SAFETY: see `Controller::new`.
                    None => unsafe { signals::$guard($function, &mut *$conn $(, $argument)*) },
                };
                guarded.left(signal, $conn);
            }
        }
        #[cfg(not(can_load))]
        {
            let _ = (&$self, $call); // only loaded algorithms are guarded
            // SAFETY: see `Controller::new`.
            unsafe {
                ($function)($conn $(, $argument)*);
            }
        }
    }};
}

impl Controller {
    /// Starts a connection whose view is `conn`.
    pub fn new(params: Params, conn: &mut Conn) -> Self {
        let mut new = Self { params, state: State::default() };
        let (raw, state, p) = new.parts();
        conn.notes = 0;
        // SAFETY: as for every call below: the C side asserts at compile time that its state fits
        // STATE_MAX_BYTES, `Params` holds one word per field of its parameter structure, `Conn`
        // and `Ack` mirror the C layout, and no callee keeps a pointer.
        let this = &mut new;
        call!(this, Call::Init, About::Connection, knee_guard_init, raw.init, conn, state, p);
        new
    }

    /// Resumes a connection whose state was `state`, on whatever host. Any bytes are safe: the kernel's
    /// verifier takes the same source only because it stays within its state whatever that holds.
    pub fn resume(params: Params, state: State) -> Self {
        Self { params, state }
    }

    /// Goes back to a state that it had before.
    pub fn restore(&mut self, state: State) {
        self.state = state;
    }

    /// The state as it is now.
    pub fn state(&self) -> &State {
        &self.state
    }

    #[inline]
    fn parts(&mut self) -> (&'static crate::ffi::Algorithm, *mut c_void, *const c_void) {
        (
            self.params.algorithm().raw,
            self.state.0.as_mut_ptr().cast(),
            self.params.words().as_ptr().cast(),
        )
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.params.algorithm()
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// For every ACK, in every phase, before anything else. Nothing in profile RATE.
    #[inline(always)]
    pub fn on_rtt(&mut self, conn: &mut Conn, ack: &Ack) {
        let (raw, state, p) = self.parts();
        conn.notes = 0;
        if let Some(on_rtt) = raw.on_rtt {
            let call = Call::OnRtt;
            call!(self, call, About::Ack(ack), knee_guard_ack, on_rtt, conn, state, p, ack);
        }
    }

    /// For an ACK of new data, where the stack may grow the window; in profile RATE for every ACK.
    #[inline(always)]
    pub fn on_ack(&mut self, conn: &mut Conn, ack: &Ack) {
        let (raw, state, p) = self.parts();
        conn.notes = 0;
        let call = Call::OnAck;
        call!(self, call, About::Ack(ack), knee_guard_ack, raw.on_ack, conn, state, p, ack);
    }

    /// Threshold on entering recovery, packets.
    pub fn ssthresh(&mut self, conn: &mut Conn) -> u32 {
        self.window(Call::Ssthresh, 2..=u32::MAX, self.params.algorithm().raw.ssthresh, conn)
    }

    /// Something else happened.
    pub fn on_event(&mut self, conn: &mut Conn, event: Event) {
        let (raw, state, p) = self.parts();
        conn.notes = 0;
        let (call, number) = (Call::OnEvent, event as u32);
        let on_event = raw.on_event;
        call!(self, call, About::Event(event), knee_guard_event, on_event, conn, state, p, number);
    }

    /// Window after a reduction that proved unnecessary, packets.
    pub fn undo(&mut self, conn: &mut Conn) -> u32 {
        self.window(Call::Undo, 1..=conn.cwnd_max_pkts, self.params.algorithm().raw.undo, conn)
    }

    /// Makes a call that returns a window or threshold within `range`, packets.
    fn window(
        &mut self,
        call: Call,
        range: RangeInclusive<u32>,
        function: Window,
        conn: &mut Conn,
    ) -> u32 {
        let (_, state, p) = self.parts();
        conn.notes = 0;
        #[cfg(can_load)]
        if let Some(guarded) = self.guarded(call.name()) {
            let mut pkts = 0;
            if let Some(callee) = guarded.callee() {
                let Self { params, state } = self;
                let (about, params) = (About::Connection, params.words());
                pkts = guarded.succeeded(callee.call(call, about, params, state, conn));
                guarded.left(0, conn);
                return guarded.gave(pkts, &range);
            }
            // SAFETY: see `new`.
            let signal = unsafe { signals::knee_guard_window(function, conn, state, p, &mut pkts) };
            guarded.left(signal, conn);
            return guarded.gave(pkts, &range);
        }
        let _ = (call, range);
        // SAFETY: see `new`.
        unsafe { function(conn, state, p) }
    }

    /// None of a built-in algorithm.
    #[cfg(can_load)]
    #[inline]
    fn guarded(&self, call: &'static str) -> Option<Guarded> {
        let algorithm = self.params.algorithm();
        algorithm.own.map(|own| Guarded { algorithm, call, own })
    }

    /// Internals worth plotting; [`Algorithm::observes`] names them.
    pub fn observe(&self) -> [u32; OBSERVE_N] {
        let mut out = [0; OBSERVE_N];
        let observe = self.params.algorithm().raw.observe;
        let (state, p) = (self.state.0.as_ptr().cast(), self.params.words().as_ptr().cast());
        #[cfg(can_load)]
        if let Some(guarded) = self.guarded("observe") {
            if let Some(callee) = guarded.callee() {
                return guarded.succeeded(callee.observe(self.params.words(), &self.state));
            }
            // SAFETY: see `new`.
            let signal = unsafe { signals::knee_guard_observe(observe, state, p, &mut out) };
            guarded.returned(signal);
            return out;
        }
        // SAFETY: see `new`; the callee only reads state.
        unsafe { observe(state, p, &mut out) };
        out
    }

    /// The first of the invariants that the algorithm declares of its state which this one does not
    /// keep.
    pub fn violated(&self) -> Option<&'static str> {
        let violated = self.params.algorithm().raw.violated;
        let (state, p) = (self.state.0.as_ptr().cast(), self.params.words().as_ptr().cast());
        #[cfg(can_load)]
        if let Some(guarded) = self.guarded("violated") {
            let mut name = ptr::null();
            // SAFETY: see `new`; the callee only reads.
            let signal = unsafe { signals::knee_guard_violated(violated, state, p, &mut name) };
            guarded.returned(signal);
            return literal(name);
        }
        // SAFETY: see `new`; the callee only reads.
        literal(unsafe { violated(state, p) })
    }
}

/// A name that the C side gave; null: none.
fn literal(name: *const c_char) -> Option<&'static str> {
    // SAFETY: null, or a string literal.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("?"))
}
