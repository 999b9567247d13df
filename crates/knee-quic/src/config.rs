//! The choices of an application: algorithm, parameters, seed.

use crate::{
    algorithm::{Algorithm, Numbers, Observer},
    controller::Controller,
};
use knee_cc::{ParamError, Params};
use quinn_proto::congestion;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};
use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};
use thiserror::Error;

/// The reason why a choice is refused. Each message names an accepted alternative.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No such algorithm.
    #[error("no such algorithm: `{name}`; choose one of: {known}")]
    Algorithm {
        /// Name that was given.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// A parameter's name or value.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// Congestion control for connections of quinn: a factory for
/// `quinn::TransportConfig::congestion_controller_factory`.
///
/// Every connection, and every new path of a connection, gets a controller of its own.
#[derive(Clone)]
pub struct CongestionControl {
    params: Params,
    seed: Option<u64>,
    initial_window_pkts: Option<u32>,
    clock_zero: Option<Instant>,
    observer: Option<Arc<dyn Observer>>,
    numbers: Numbers,
}

impl CongestionControl {
    /// The algorithm of that name, one of [`knee_cc::algorithms`], with its defaults.
    ///
    /// # Errors
    /// [`Error::Algorithm`], which lists those that exist.
    pub fn new(algorithm: &str) -> Result<Self, Error> {
        let found = knee_cc::algorithm(algorithm).ok_or_else(|| Error::Algorithm {
            name: algorithm.to_owned(),
            known: knee_cc::algorithms().iter().map(|a| a.name()).collect::<Vec<_>>().join(", "),
        })?;
        Ok(Self::from_params(Params::defaults(found)))
    }

    /// An algorithm with parameters that are already validated.
    pub fn from_params(params: Params) -> Self {
        Self {
            params,
            seed: None,
            initial_window_pkts: None,
            clock_zero: None,
            observer: None,
            numbers: Numbers::default(),
        }
    }

    /// Sets a parameter, by Knee's name or FreeBSD's, to a value with its unit: `"20ms"`, `"8p"`,
    /// `"0.25"`, or a name (`knee list` shows all). The whole must be valid after every step; where
    /// two parameters bound each other, [`Self::set_all`] sets both at once.
    ///
    /// # Errors
    /// [`Error::Param`]: no such parameter, another unit, out of range, or in contradiction to
    /// another parameter.
    pub fn set(self, parameter: &str, value: &str) -> Result<Self, Error> {
        self.set_all([(parameter, value)])
    }

    /// Sets several parameters, as [`Self::set`]; they are validated together.
    ///
    /// # Errors
    /// The errors of [`Self::set`].
    pub fn set_all<'a>(
        self,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        Ok(Self { params: self.params.with_written(given)?, ..self })
    }

    /// Makes the random choices of HD and CHD repeatable: the n-th controller that is built from
    /// now on always draws the same. Without a seed they come from the operating system.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), numbers: Numbers::default(), ..self }
    }

    /// The first window, packets of the path's MTU; at least 2. Without this RFC 9002 section 7.2:
    /// 10, less where packets are larger than 1472 bytes.
    pub fn initial_window_pkts(self, pkts: u32) -> Self {
        Self { initial_window_pkts: Some(pkts), ..self }
    }

    /// The moment that is 0 us on the algorithms' clock (`Conn::now_us`). Without this it is the
    /// moment at which the controller was built. Earlier moments than that one read 0.
    pub fn clock_zero(self, zero: Instant) -> Self {
        Self { clock_zero: Some(zero), ..self }
    }

    /// Reports every call of the algorithm to `observer`, on all connections.
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Algorithm and parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The stream of the controller with this number: two steps of a generator keep neighbours
    /// apart.
    fn random(&self, number: u64) -> SplitMix64 {
        match self.seed {
            Some(seed) => {
                let key = SplitMix64::seed_from_u64(seed).next_u64();
                SplitMix64::seed_from_u64(SplitMix64::seed_from_u64(key ^ number).next_u64())
            }
            None => SplitMix64::seed_from_u64(getrandom::u64().expect("random bits of the system")),
        }
    }
}

impl fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = self.params.algorithm().name();
        write!(f, "CongestionControl({algorithm}, {:?})", self.params.shown())
    }
}

impl congestion::ControllerFactory for CongestionControl {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let observer = self.observer.clone();
        Box::new(Controller::new(
            |conn| Algorithm::new(self.params.clone(), conn, observer, number, &self.numbers),
            self.random(number),
            self.initial_window_pkts,
            self.clock_zero.unwrap_or(now),
            now,
            current_mtu,
            self.params.algorithm().profile(),
        ))
    }
}
