//! Algorithms that the program around this library defines while it runs: a descriptor, and functions
//! for the calls, compiled ones or any others.

use crate::{
    Ack, Callee, Conn, LoadError, OBSERVE_N, Profile, STATE_MAX_BYTES,
    ffi::{self, Init, Observe, Window},
    load::refuse_built_in,
    registry::{self, Algorithm, Here, Own, Param, ParamKind},
};
use serde::Deserialize;
use std::{
    ffi::{CString, c_char, c_void},
    ptr,
};

/// The description of an algorithm, apart from its functions.
#[derive(Clone, Debug, Deserialize)]
pub struct Definition {
    /// Name, of a-z, 0-9 and _.
    pub name: String,
    /// A summary of one line.
    pub summary: String,
    /// The construct that defines it, for messages: `class Mine`.
    pub origin: String,
    /// Names of the values that `observe` gives, at most [`OBSERVE_N`]; at least one.
    pub observes: Vec<String>,
    /// Owner of the window.
    pub profile: Profile,
    /// True if it wants random bits with each ACK.
    pub uses_random: bool,
    /// Its parameters.
    pub params: Vec<ParamDefinition>,
}

/// A row of the parameter table; values as a person writes them ([`Param::parse`]).
#[derive(Clone, Debug, Deserialize)]
pub struct ParamDefinition {
    /// Name in scenario files and on the command line.
    pub name: String,
    /// Interpretation of its number.
    pub kind: ParamKind,
    /// The value that applies when none is given.
    pub default: String,
    /// Smallest value; of a choice, nothing.
    pub min: String,
    /// Largest value; of a choice, nothing.
    pub max: String,
    /// Names of a [`ParamKind::Choice`].
    pub choices: Vec<String>,
    /// One line of help.
    pub help: String,
}

/// Functions with the signatures of `struct cc_algorithm` in `cc/host/native/knee/host.h`. A missing
/// one does nothing; without `ssthresh`, a loss halves the window as NewReno does; without `undo`, the
/// window stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// `init`.
    pub init: Option<Init>,
    /// `on_rtt`.
    pub on_rtt: Option<ffi::Call<*const Ack>>,
    /// `on_ack`.
    pub on_ack: ffi::Call<*const Ack>,
    /// `ssthresh`.
    pub ssthresh: Option<Window>,
    /// `on_event`.
    pub on_event: Option<ffi::Call<u32>>,
    /// `undo`.
    pub undo: Option<Window>,
    /// `observe`.
    pub observe: Option<Observe>,
}

/// Adds an algorithm made of `functions` to the registry. The latest of a name is the one that counts.
/// It stays as long as this process, and its runs must be made in this process.
///
/// # Errors
/// It does not describe itself, or has the name of a built-in one.
///
/// # Safety
/// Each function has the signature of its type, touches no more than its arguments point to (of the
/// state, [`STATE_MAX_BYTES`]; of the parameters, a word for each), and stays where it is.
pub unsafe fn define(
    definition: &Definition,
    functions: Functions,
) -> Result<Algorithm, LoadError> {
    add(definition, functions, None)
}

/// Does the same as [`define`], with functions that may fail.
///
/// # Errors
/// As [`define`].
pub fn define_callee(
    definition: &Definition,
    callee: Box<dyn Callee>,
) -> Result<Algorithm, LoadError> {
    add(definition, NONE, Some(callee))
}

const NONE: Functions = Functions {
    init: None,
    on_rtt: None,
    on_ack: no_ack,
    ssthresh: None,
    on_event: None,
    undo: None,
    observe: None,
};

unsafe extern "C" fn no_init(_: *mut Conn, _: *mut c_void, _: *const c_void) {}
unsafe extern "C" fn no_ack(_: *mut Conn, _: *mut c_void, _: *const c_void, _: *const Ack) {}
unsafe extern "C" fn no_event(_: *mut Conn, _: *mut c_void, _: *const c_void, _: u32) {}
unsafe extern "C" fn no_observe(_: *const c_void, _: *const c_void, _: *mut [u32; OBSERVE_N]) {}
unsafe extern "C" fn none_violated(_: *const c_void, _: *const c_void) -> *const c_char {
    ptr::null()
}
unsafe extern "C" fn half(conn: *mut Conn, _: *mut c_void, _: *const c_void) -> u32 {
    // SAFETY: the caller passes a valid view.
    let conn = unsafe { &*conn };
    (conn.cwnd_pkts.min(conn.outstanding_pkts) / 2).max(2)
}
unsafe extern "C" fn as_it_is(conn: *mut Conn, _: *mut c_void, _: *const c_void) -> u32 {
    // SAFETY: as above.
    unsafe { &*conn }.cwnd_pkts
}

fn leaked(text: &str) -> Result<*const c_char, LoadError> {
    let text = CString::new(text).map_err(|_| {
        LoadError::new(format!("{text:?} contains a NUL"), "leave the NUL out of the text")
    })?;
    Ok(text.into_raw())
}

fn add(
    definition: &Definition,
    functions: Functions,
    callee: Option<Box<dyn Callee>>,
) -> Result<Algorithm, LoadError> {
    let Definition { name, summary, origin, observes, profile, uses_random, params } = definition;
    let refuse = |what: String| LoadError::new(format!("{origin}: {what}"), HELP);
    if observes.len() > OBSERVE_N {
        return Err(refuse(format!("it observes {} values; {OBSERVE_N} fit", observes.len())));
    }
    let mut table = Vec::new();
    for (index, param) in params.iter().enumerate() {
        let row = param.raw(index).map_err(|what| refuse(format!("`{}`: {what}", param.name)))?;
        table.push(row?);
    }
    let mut names = observes.clone();
    names.resize(OBSERVE_N, String::new());
    let raw = ffi::Algorithm {
        name: leaked(name)?,
        summary: leaked(summary)?,
        citation: leaked(origin)?,
        observes: leaked(&names.join("|"))?,
        n_params: table.len() as u32,
        params: table.leak().as_ptr(),
        rules: [].as_ptr(),
        n_rules: 0,
        state_bytes: STATE_MAX_BYTES as u32,
        uses_random: u32::from(*uses_random),
        profile: u32::from(*profile == Profile::Rate),
        contract: crate::CONTRACT_VERSION,
        init: functions.init.unwrap_or(no_init),
        on_rtt: match (profile, functions.on_rtt) {
            (Profile::Rate, _) => None,
            (Profile::Classic, given) => given.or(Some(no_ack)),
        },
        on_ack: functions.on_ack,
        ssthresh: functions.ssthresh.unwrap_or(half),
        on_event: functions.on_event.unwrap_or(no_event),
        undo: functions.undo.unwrap_or(as_it_is),
        observe: functions.observe.unwrap_or(no_observe),
        violated: none_violated,
    };
    let here = Here { origin: origin.clone(), callee };
    let algorithm = Algorithm {
        raw: Box::leak(Box::new(raw)),
        own: Some(Box::leak(Box::new(Own::Here(here)))),
    };
    algorithm.check().map_err(|what| refuse(format!("`{name}`: {what}")))?;
    refuse_built_in(origin, algorithm)?;
    registry::add(algorithm);
    Ok(algorithm)
}

const HELP: &str = "docs/how-to/algorithm-in-python.md has the rules";

impl ParamDefinition {
    /// The row; the inner error is of a text that cannot be kept.
    fn raw(&self, index: usize) -> Result<Result<ffi::Param, LoadError>, String> {
        let choices = self.choices.join("|");
        let param = Param::unbounded(self.kind, choices.clone().leak());
        let value = |text: &str| param.parse(text).map_err(|e| e.to_string());
        let (min, max) = match self.kind {
            ParamKind::Choice => (0, self.choices.len().saturating_sub(1) as u64),
            _ => (value(&self.min)?, value(&self.max)?),
        };
        let def = value(&self.default)?;
        if [min, max, def].iter().any(|value| *value > u64::from(u32::MAX)) {
            return Err("a value needs more than 32 bits".to_owned());
        }
        let row = || {
            Ok(ffi::Param {
                name: leaked(&self.name)?,
                alias: leaked("")?,
                choices: leaked(&choices)?,
                source: leaked("the author")?,
                help: leaked(&self.help)?,
                min,
                max,
                def,
                kind: self.kind as u32,
                index: index as u32,
            })
        };
        Ok(row())
    }
}
