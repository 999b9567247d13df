//! The algorithms that a run loads into the kernel, under names of its own.

use crate::namespace::random_u32;
use knee_cc::Params;
use knee_kernel::{Loaded, Variant};
use knee_model::{Cc, FlowKind, HostError, RunSpec, Transport};

/// Variants that runs use. They leave the kernel when this is dropped, and with the process
/// however it ends.
pub struct Variants {
    loaded: Vec<(Params, Loaded)>,
}

impl Variants {
    /// Each combination of algorithm and parameters that `spec` has in the kernel, once.
    pub fn needed(spec: &RunSpec) -> Vec<Params> {
        let mut needed: Vec<Params> = Vec::new();
        for flow in &spec.flows {
            let FlowKind::Tcp(tcp) = &flow.kind else { continue };
            if tcp.transport == Transport::Quic {
                continue;
            }
            let Some(params) = tcp.cc.params() else { continue };
            if !needed.contains(params) {
                needed.push(params.clone());
            }
        }
        needed
    }

    /// Loads these.
    ///
    /// # Errors
    /// The kernel refuses one, or access to it is not permitted.
    pub fn load(needed: &[Params]) -> Result<Self, HostError> {
        let run = random_u32()?;
        let load = |(number, params): (usize, &Params)| {
            let name = format!("k{run:08x}_{number}");
            Ok((params.clone(), knee_kernel::load(params, &name)?))
        };
        let loaded = needed.iter().enumerate().map(load).collect::<Result<_, HostError>>()?;
        Ok(Self { loaded })
    }

    /// Makes what they draw depend on the run's seed.
    pub(crate) fn seed(&self, seed: u64) -> Result<(), HostError> {
        let bits = (seed ^ (seed >> 32)) as u32;
        Ok(self.loaded.iter().try_for_each(|(_, loaded)| loaded.seed(bits))?)
    }

    /// Names of the loaded algorithms.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.loaded.iter().map(|(_, loaded)| loaded.name()).collect()
    }

    /// Number of instructions that the kernel's verifier looked at before it took each: those of its largest
    /// program.
    pub(crate) fn verified(&self) -> Result<Vec<(String, u32)>, HostError> {
        if self.loaded.is_empty() {
            return Ok(Vec::new());
        }
        let variants = knee_kernel::list()?;
        let ours = variants.iter().filter(|v| self.loaded.iter().any(|(_, l)| l.name() == v.name));
        let most = |v: &Variant| {
            let all = v.callbacks.iter().map(|callback| callback.verified_instructions);
            (v.algorithm.clone(), all.max().unwrap_or(0))
        };
        Ok(ours.map(most).collect())
    }

    /// The kernel's name of a TCP flow's congestion control.
    pub(crate) fn name(&self, cc: &Cc) -> String {
        match cc {
            Cc::Kernel(name) => name.clone(),
            Cc::Knee(params) => {
                let found = self.loaded.iter().find(|(p, _)| p == params);
                found.map_or_else(String::new, |(_, loaded)| loaded.name().to_owned())
            }
        }
    }
}
