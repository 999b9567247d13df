//! A figure: its axes and runs, formulas over the runs, drawings of them. Papers have figures, and
//! the criteria of an evaluation have axes and formulas.

mod axes;
mod cases;
mod compiled;
mod description;
mod drawings;
mod fluid;
mod formula;
mod language;
mod spread;

pub use axes::{Axis, AxisValue, plain_name};
pub use cases::{Case, Cases};
pub use description::{Figure, Model, PaperPoints, Plot, PlotKind, Tabulated, Unjudged};
pub use fluid::{FluidRule, FluidSpec};
#[cfg(test)]
pub(crate) use formula::tests;
pub use spread::Spread;
pub(crate) use {
    axes::{Part, combinations},
    drawings::{charts, table},
    formula::{Formulas, Values, measure},
    language::check as check_formula,
    spread::number,
};
