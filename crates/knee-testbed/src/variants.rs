//! The algorithms that a run loads into the kernel, under names of its own.

use crate::namespace::random_u32;
use knee_cc::Params;
use knee_kernel::{Loaded, Variant};
use knee_model::{Cc, FlowKind, HostError, RunSpec, Transport};

/// Variants that runs use. They leave the kernel when this is dropped, and with the process
/// however it ends.
pub(crate) struct Variants {
    loaded: Vec<(Params, Loaded)>,
}

impl Variants {
    /// Loads each combination of algorithm and parameters that `spec` has in the kernel, once.
    ///
    /// # Errors
    /// The kernel refuses one, or access to it is not permitted.
    pub(crate) fn load(spec: &RunSpec) -> Result<Self, HostError> {
        let run = random_u32()?;
        let mut loaded: Vec<(Params, Loaded)> = Vec::new();
        for flow in &spec.flows {
            let FlowKind::Tcp(tcp) = &flow.kind else { continue };
            if tcp.transport == Transport::Quic {
                continue;
            }
            let Some(params) = tcp.cc.params() else { continue };
            if loaded.iter().all(|(known, _)| known != params) {
                let name = format!("k{run:08x}_{}", loaded.len());
                loaded.push((params.clone(), knee_kernel::load(params, &name)?));
            }
        }
        Ok(Self { loaded })
    }

    /// Makes what they draw depend on the run's seed.
    pub(crate) fn seed(&self, seed: u64) -> Result<(), HostError> {
        let bits = (seed ^ (seed >> 32)) as u32;
        self.loaded.iter().try_for_each(|(_, loaded)| loaded.seed(bits))
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
