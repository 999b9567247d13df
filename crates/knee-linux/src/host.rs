//! Linux in exact virtual time as a [`Host`].

use crate::{
    cache::{self, Kernel},
    check::check,
    choice::KernelChoice,
    machine,
};
use knee_capture::CaptureFile;
use knee_model::{
    Host, HostError, HostErrorKind, RunOptions, RunRecord, RunSpec, Tell, failure::broken,
};

/// Linux in exact virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

fn kernel(options: &RunOptions) -> Result<Kernel, HostError> {
    let choice = options.kernel.as_deref().map(str::parse::<KernelChoice>).transpose();
    cache::find(
        &choice.map_err(|e| HostError::new(HostErrorKind::Unavailable, e))?.unwrap_or_default(),
    )
}

impl Host for Linux {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn about(&self) -> &'static str {
        "Linux in exact virtual time: real TCP in a kernel without a machine, the same bytes each time"
    }

    fn doing(&self) -> &'static str {
        "running in kernels"
    }

    fn check(&self, spec: &RunSpec, options: &RunOptions) -> Result<(), HostError> {
        check(spec, options).map(drop)
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_with_progress(
        &self,
        spec: &RunSpec,
        options: &RunOptions,
        tell: Tell<'_>,
    ) -> Result<RunRecord, HostError> {
        let approximations = check(spec, options)?;
        let capture = options.pcap.as_deref().map(CaptureFile::create).transpose()?;
        let silence = machine::longest_silence()?;
        let mut record = machine::run(&kernel(options)?.program, spec, capture, silence, tell)?;
        if record.flows.len() != spec.flows.len() {
            return Err(broken("the kernel's record has other flows than the run"));
        }
        record.approximations = approximations;
        Ok(record)
    }

    fn fingerprint(&self, _: &RunSpec, options: &RunOptions) -> Option<String> {
        Some(format!("linux {}", kernel(options).ok()?.about.hash))
    }

    fn made_with(&self, options: &RunOptions) -> Vec<(&'static str, String)> {
        let Ok(kernel) = kernel(options) else { return Vec::new() };
        vec![
            ("kernel", kernel.about.release.clone()),
            ("kernel package", kernel.about.package()),
            ("kernel source (SHA-256)", kernel.about.source_sha256.clone()),
            ("kernel build (SHA-256)", kernel.about.hash),
        ]
    }
}
