//! The part of a paper that a command reproduces.

use super::{Claim, Paper};
use crate::{error::LabError, figure::Figure};

/// Selection of runs and claims.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only the figure of this number.
    pub figure: Option<String>,
    /// Only these claims, all of them if none is named; and on hosts after the first only the runs that
    /// they use, without figures.
    pub claims: Option<Vec<String>>,
    /// Only the runs and claims of the short form.
    pub short: bool,
    /// Also the runs that the paper's files leave out on a host.
    pub all_values: bool,
    /// Further values set in all runs, as after `--set`.
    pub sets: Vec<String>,
}

/// The selected figures and claims of a paper.
pub(super) struct Selection<'a> {
    pub(super) figures: Vec<Figure>,
    pub(super) claims: Vec<Claim>,
    pub(super) wanted: &'a Wanted,
}

impl<'a> Selection<'a> {
    /// Selects what is `wanted` of `paper` and its `claims`.
    ///
    /// # Errors
    /// The paper has no such figure or claim.
    pub(super) fn of(
        paper: &Paper,
        claims: Vec<Claim>,
        wanted: &'a Wanted,
    ) -> Result<Self, LabError> {
        let figures = figures(paper, wanted)?;
        let of_figures = |c: &Claim| figures.iter().any(|f| f.number == c.figure);
        let is_possible = |c: &Claim| of_figures(c) && (c.short.is_some() || !wanted.short);
        let possible = claims.into_iter().filter(is_possible).collect();
        let mut selection = Self { figures, claims: possible, wanted };
        if let Some(named) = &wanted.claims {
            selection.retain(paper, named)?;
        }
        Ok(selection)
    }

    /// Keeps the claims called `named`, or all if none is named, and their figures.
    fn retain(&mut self, paper: &Paper, named: &[String]) -> Result<(), LabError> {
        let Self { figures, claims, wanted } = self;
        if let Some(unknown) = named.iter().find(|id| !claims.iter().any(|c| c.id == **id)) {
            let known: Vec<&str> = claims.iter().map(|c| c.id.as_str()).collect();
            let form = if wanted.short { "the short form of " } else { "" };
            let figure = wanted.figure.as_ref().map(|n| format!("figure {n} of "));
            let of = format!("{form}{}{}", figure.unwrap_or_default(), paper.id);
            let help = format!("its claims are: {}", known.join(", "));
            return Err(LabError::new(format!("{of} has no claim {unknown}"), help));
        }
        claims.retain(|c| named.is_empty() || named.contains(&c.id));
        figures.retain(|f| claims.iter().any(|c| c.concerns(f)));
        Ok(())
    }
}

/// The figure whose number is `wanted`, or all.
fn figures(paper: &Paper, wanted: &Wanted) -> Result<Vec<Figure>, LabError> {
    let is_wanted = |f: &&Figure| wanted.figure.as_ref().is_none_or(|number| f.number == *number);
    let figures: Vec<Figure> = paper.figures.iter().filter(is_wanted).cloned().collect();
    match &wanted.figure {
        Some(number) if figures.is_empty() => {
            let known: Vec<&str> = paper.figures.iter().map(|f| f.number.as_str()).collect();
            Err(LabError::NoFigure {
                paper: paper.id.clone(),
                figure: number.clone(),
                known: known.join(", "),
            })
        }
        _ => Ok(figures),
    }
}
