//! Calls of a loaded algorithm, and the checks after them: nobody has proven it, as the tests and the
//! kernel's verifier have the built-in ones.

#[cfg(can_load)]
use crate::{Algorithm, Callee, Failure, ffi::Conn, registry::Own};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};
#[cfg(can_load)]
use std::{ffi::c_int, ops::RangeInclusive};
use thiserror::Error;

/// A loaded algorithm broke the contract, which ended the run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("algorithm `{algorithm}` ({file}): {call}() {why}")]
pub struct Broken {
    /// Its name.
    pub algorithm: &'static str,
    /// Its source: a file, or the construct that defines it.
    pub file: &'static str,
    /// The function that did it.
    pub call: &'static str,
    /// Its violation of the contract.
    pub why: String,
}

impl Broken {
    /// Returns the next step for the user.
    pub fn help(&self) -> &'static str {
        if self.file.ends_with(".c") {
            "try it with `knee test`, which looks for such a case and shows the calls that lead there"
        } else {
            "docs/how-to/algorithm-in-python.md says what each call may do"
        }
    }
}

/// Returns the result of `run`, unless a loaded algorithm breaks the contract in it.
///
/// # Errors
/// [`Broken`].
pub fn contain<T>(run: impl FnOnce() -> T) -> Result<T, Broken> {
    // Data that `run` has changed are not looked at again: the run has failed.
    catch_unwind(AssertUnwindSafe(run)).map_err(|why: Box<dyn Any + Send>| {
        match why.downcast::<Broken>() {
            Ok(broken) => *broken,
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Returns the fault of the view that a call left: `left a window of ...`.
#[cfg(can_load)]
#[inline]
pub fn fault(conn: &Conn) -> Option<String> {
    let Conn { cwnd_pkts, cwnd_max_pkts, ssthresh_pkts, .. } = *conn;
    if !(1..=cwnd_max_pkts).contains(&cwnd_pkts) {
        Some(format!("left a window of {cwnd_pkts} packets; it must be 1 to {cwnd_max_pkts}"))
    } else if ssthresh_pkts < 2 {
        Some(format!("left ssthresh at {ssthresh_pkts} packets; it must be 2 or more"))
    } else {
        None
    }
}

/// One call of a loaded algorithm.
#[cfg(can_load)]
#[derive(Clone, Copy)]
pub(crate) struct Guarded {
    pub(crate) algorithm: Algorithm,
    pub(crate) call: &'static str,
    pub(crate) own: &'static Own,
}

#[cfg(can_load)]
impl Guarded {
    /// The functions, if they are not C's.
    #[inline]
    pub(crate) fn callee(self) -> Option<&'static dyn Callee> {
        match self.own {
            Own::File(_) => None,
            Own::Here(here) => here.callee.as_deref(),
        }
    }

    /// Returns the value of a call that may fail.
    pub(crate) fn succeeded<T>(self, result: Result<T, Failure>) -> T {
        match result {
            Ok(value) => value,
            Err((call, why)) => self.broken(call, why),
        }
    }

    /// Judges the signal that ended the call; 0: it returned.
    pub(crate) fn returned(self, signal: c_int) {
        self.hold(signal == 0, || match signal {
            libc::SIGVTALRM => "did not return within a second of processor time".to_owned(),
            libc::SIGFPE => "divided by zero".to_owned(),
            libc::SIGSEGV | libc::SIGBUS => "used memory that is not its own".to_owned(),
            other => format!("was ended by signal {other}"),
        });
    }

    /// Judges also the view that the call left.
    pub(crate) fn left(self, signal: c_int, conn: &Conn) {
        self.returned(signal);
        if let Some(why) = fault(conn) {
            self.broken(self.call, why);
        }
    }

    /// Judges a window or threshold that the call returned.
    pub(crate) fn gave(self, pkts: u32, range: &RangeInclusive<u32>) -> u32 {
        self.hold(range.contains(&pkts), || match *range.end() {
            u32::MAX => format!("returned {pkts} packets; it must be {} or more", range.start()),
            most => format!("returned {pkts} packets; it must be {} to {most}", range.start()),
        });
        pkts
    }

    /// Leaves all that calls the algorithm, up to [`contain`], unless `holds`: no call can continue, and
    /// none of the functions between should have to say so.
    #[inline]
    fn hold(self, holds: bool, why: impl FnOnce() -> String) {
        if !holds {
            self.broken(self.call, why());
        }
    }

    fn broken(self, call: &'static str, why: String) -> ! {
        let file = match self.own {
            Own::File(source) => &source.file,
            Own::Here(here) => &here.origin,
        };
        let algorithm = self.algorithm.name();
        resume_unwind(Box::new(Broken { algorithm, file, call, why }))
    }
}

#[cfg(can_load)]
pub(crate) mod signals {
    use crate::ffi::{Ack, Call, Conn, Init, Observe, Violated, Window};
    use std::ffi::{c_char, c_int, c_void};

    // Each makes the call; gives 0, or the signal that ended it.
    unsafe extern "C" {
        pub(crate) fn knee_guard_init(
            f: Init,
            conn: *mut Conn,
            state: *mut c_void,
            params: *const c_void,
        ) -> c_int;
        pub(crate) fn knee_guard_ack(
            f: Call<*const Ack>,
            conn: *mut Conn,
            state: *mut c_void,
            params: *const c_void,
            ack: *const Ack,
        ) -> c_int;
        pub(crate) fn knee_guard_event(
            f: Call<u32>,
            conn: *mut Conn,
            state: *mut c_void,
            params: *const c_void,
            event: u32,
        ) -> c_int;
        pub(crate) fn knee_guard_window(
            f: Window,
            conn: *mut Conn,
            state: *mut c_void,
            params: *const c_void,
            result: *mut u32,
        ) -> c_int;
        pub(crate) fn knee_guard_observe(
            f: Observe,
            state: *const c_void,
            params: *const c_void,
            out: *mut [u32; 4],
        ) -> c_int;
        pub(crate) fn knee_guard_violated(
            f: Violated,
            state: *const c_void,
            params: *const c_void,
            result: *mut *const c_char,
        ) -> c_int;
    }
}
