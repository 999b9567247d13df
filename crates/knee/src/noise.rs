//! The option `--noise` of commands that run scenarios.

use crate::{bench, output};
use knee_model::Ns;
use knee_scenario::units::TIME;

/// A small random delay in all runs, against runs that lock in phase.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Noise {
    /// Extra delay of each packet on its flow's access link, in either direction, uniform from 0 to this
    /// and drawn from the seed; results that a little noise changes hang on exact timing
    #[arg(long, value_name = "TIME", value_parser = bench::delay, allow_hyphen_values = true)]
    pub(crate) noise: Option<Ns>,
}

impl Noise {
    /// The largest delay; 0: no noise.
    pub(crate) fn most_ns(self) -> Ns {
        self.noise.unwrap_or(0)
    }

    /// The setting of a scenario that has none of its own, as after `--set`.
    pub(crate) fn set(self) -> Option<String> {
        Some(self.most_ns()).filter(|ns| *ns > 0).map(set)
    }

    /// The fact for reports.
    pub(crate) fn meta(self) -> Option<(String, String)> {
        self.words().map(|words| ("Noise".to_owned(), words))
    }

    /// Tells the user that results have noise.
    pub(crate) fn tell(self) {
        if let Some(words) = self.words() {
            output::tell(&format!("noise: {words}"));
        }
    }

    fn words(self) -> Option<String> {
        let most_ns = Some(self.most_ns()).filter(|ns| *ns > 0)?;
        Some(format!("0 to {} for each packet on each access link", TIME.show(most_ns)))
    }
}

/// The setting of a scenario for noise up to `most_ns`, as after `--set`.
pub(crate) fn set(most_ns: Ns) -> String {
    format!("path.noise={}", TIME.show(most_ns))
}
