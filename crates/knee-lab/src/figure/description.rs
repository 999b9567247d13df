//! A figure as data: its runs and its plots.

use super::{
    axes::{Axis, Combination, Part, combinations, plain_name, written},
    fluid::FluidSpec,
};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};

/// A figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its number in the paper.
    pub number: String,
    /// Title.
    pub title: String,
    /// The scenario that its runs start from; none: it needs no runs.
    pub scenario: Option<String>,
    /// Values set for all of its runs.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// Reasons why it is not run on a host, by the host's name.
    #[serde(default)]
    pub not_on: BTreeMap<String, Unjudged>,
    /// Axes that vary between its runs.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// Changes for the runs of a cause, after the values of the axes.
    #[serde(skip)]
    pub(crate) changes: Option<BTreeMap<String, toml::Value>>,
    /// Plots of the figure.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    /// Tables next to the plots.
    #[serde(default, rename = "table")]
    pub tables: Vec<Tabulated>,
}

/// A value of all cases of a figure, as a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tabulated {
    /// Title, with unit.
    pub title: String,
    /// Axis whose values are rows; the other axes' combinations are columns.
    pub rows: String,
    /// Formula of a run `r`; its median over repetitions is shown.
    pub value: String,
}

/// The plot of a figure, or of a panel of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Title of the panel.
    pub title: String,
    /// Kind of plot.
    pub kind: PlotKind,
    /// Values of axes that are not the first.
    #[serde(default)]
    pub fixed: BTreeMap<String, toml::Value>,
    /// Sweep: axis along x.
    pub x: Option<String>,
    /// Sweep: axis whose values are series.
    pub series: Option<String>,
    /// Sweep: formula of y, of a run `r`.
    pub value: Option<String>,
    /// Label of the x axis, with unit.
    pub x_label: Option<String>,
    /// Label of the y axis, with unit.
    pub y_label: Option<String>,
    /// Sweep: a model plotted over it.
    pub model: Option<Model>,
    /// Sweep: a linear x axis.
    #[serde(default)]
    pub linear: bool,
    /// Timeline and history: width of the bins.
    pub bin_s: Option<f64>,
    /// History: plotted quantities, each as a chart: goodput, windows, queue, probes, or the name of an
    /// observed value; goodput and windows by default.
    #[serde(default)]
    pub what: Vec<String>,
    /// History: only these flows.
    pub flows: Option<Vec<usize>>,
    /// History and flows: only from here on, s. Curves: the smallest x.
    pub from: Option<f64>,
    /// History and flows: only until here, s. Curves: the largest x.
    pub to: Option<f64>,
    /// Curves: plotted quantities.
    #[serde(default)]
    pub curves: Vec<Model>,
    /// Values that the paper's text gives, drawn as points over the first chart.
    #[serde(default)]
    pub points: Vec<PaperPoints>,
    /// Fluid: link and flows.
    pub fluid: Option<FluidSpec>,
    /// Fluid: queueing delays from which trajectories start, ms.
    #[serde(default)]
    pub starts: Vec<f64>,
}

/// Values that a paper gives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPoints {
    /// Name in the legend.
    pub name: String,
    /// x and y of each, in the units of the axes.
    pub at: Vec<(f64, f64)>,
}

/// A formula plotted as a curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name in the legend.
    pub name: String,
    /// Formula of `x`.
    pub y: String,
}

/// Kinds of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// A value against an axis, percentiles over repetitions.
    Sweep,
    /// Goodput of each flow in bins, percentiles over repetitions.
    Timeline,
    /// Events over time in the first repetition.
    History,
    /// Mean goodput of each flow, percentiles over repetitions.
    Flows,
    /// Formulas of `x`.
    Curves,
    /// The fluid model: its equilibria, and its trajectories over the first repetition's delay.
    Fluid,
    /// g(q) of HD and CHD.
    BackoffProbability,
    /// CHD's windows under a scripted sequence of delays.
    ShadowWindow,
}

/// The reason why something is not judged on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unjudged {
    /// Date of that result: the longer ago, the sooner it should be tried again.
    pub since: toml::value::Date,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (recorded {})", self.reason, self.since)
    }
}

impl Figure {
    /// Every formula, with the title of its plot or table.
    pub(crate) fn formulas(&self) -> impl Iterator<Item = (&Self, &str, &str)> {
        let of_plots = self.plots.iter().flat_map(|plot| {
            let models = plot.model.iter().chain(&plot.curves).map(|model| &model.y);
            plot.value.iter().chain(models).map(|text| (plot.title.as_str(), text.as_str()))
        });
        let of_tables = self.tables.iter().map(|t| (t.title.as_str(), t.value.as_str()));
        of_plots.chain(of_tables).map(move |(place, text)| (self, place, text))
    }

    /// Combinations of its axes' values.
    pub(crate) fn combinations(&self) -> Vec<Combination> {
        let mut all = combinations(&self.set, &self.axes);
        let changes = || self.changes.iter().flat_map(written);
        all.iter_mut().for_each(|(_, sets)| sets.extend(changes()));
        all
    }
}

impl Part<'_> {
    /// The share of `figure` that belongs to this part: its axes with the values that are run, its plots
    /// where those suffice.
    pub(crate) fn of(self, figure: &Figure) -> Figure {
        let mut figure = figure.clone();
        if figure.not_on.contains_key(self.host.name()) {
            figure.scenario = None;
            figure.plots.clear();
            figure.tables.clear();
        }
        figure.axes = self.of_axes(&figure.axes);
        let axes = &figure.axes;
        figure.plots.retain(|plot| {
            plot.fixed.iter().all(|(name, value)| {
                let axis = axes.iter().find(|a| a.name == *name);
                axis.is_none_or(|a| a.values.iter().any(|v| v.name() == plain_name(value)))
            })
        });
        figure
    }
}
