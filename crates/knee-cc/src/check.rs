//! Checks of an algorithm's own description.

use crate::{Algorithm, ParamKind, Params, STATE_MAX_BYTES};
use std::collections::BTreeSet;

impl Algorithm {
    /// Checks that it describes itself, and that its parameter table is consistent.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
            if holds { Ok(()) } else { Err(what()) }
        }
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let is_word = |name: &str| !name.is_empty() && name.chars().all(word);
        must(is_word(self.name()), || "its name is not of a-z, 0-9 and _".to_owned())?;
        must(!self.summary().is_empty(), || "it has no summary".to_owned())?;
        must(!self.citation().is_empty(), || "it has no citation".to_owned())?;
        must((1..=STATE_MAX_BYTES).contains(&self.state_bytes()), || {
            format!("its state has {} bytes, not 1 to {STATE_MAX_BYTES}", self.state_bytes())
        })?;
        let observed: Vec<_> = self.observes().into_iter().filter(|o| !o.is_empty()).collect();
        must(!observed.is_empty(), || "it lets nothing be observed".to_owned())?;
        let distinct: BTreeSet<_> = observed.iter().collect();
        must(distinct.len() == observed.len(), || "it names an observed value twice".to_owned())?;
        let mut seen = BTreeSet::new();
        for p in self.params() {
            let row = |what: &str| format!("parameter `{}`: {what}", p.name);
            must(is_word(p.name), || row("its name is not of a-z, 0-9 and _"))?;
            must(p.min <= p.default && p.default <= p.max, || {
                row(&format!("its default {} is not from {} to {}", p.default, p.min, p.max))
            })?;
            must(!p.source.is_empty(), || row("it does not say where its default comes from"))?;
            must(!p.help.is_empty(), || row("it does not say what it is"))?;
            let choices = p.choices();
            if p.kind == ParamKind::Choice {
                let ends = (p.min as usize, p.max as usize + 1);
                must(ends == (0, choices.len()), || {
                    row(&format!("it has {} choices for {} to {}", choices.len(), p.min, p.max))
                })?;
                let distinct: BTreeSet<_> = choices.iter().collect();
                must(distinct.len() == choices.len(), || row("it has a choice twice"))?;
            } else {
                must(choices.is_empty(), || row("only a CC_CHOICE has choices"))?;
            }
            must(p.kind != ParamKind::ProbabilityPpm || p.max <= 1_000_000, || {
                row("a probability is at most 1000000 parts per million")
            })?;
            for name in [Some(p.name), p.alias].into_iter().flatten() {
                must(seen.insert(name), || row(&format!("`{name}` is there twice")))?;
            }
        }
        Params::new(*self, []).map(drop).map_err(|e| format!("its defaults: {e}"))
    }
}
