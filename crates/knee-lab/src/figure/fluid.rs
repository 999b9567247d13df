//! The fluid model in papers' files: equilibria in formulas, curves and trajectories in drawings.

use knee_fluid::{Backoff, Class, Delayed, Equilibrium, Fluid, Link, Rule, Stability};
use knee_report::chart::{Axis, Chart, Point, Series, Style};
use serde::Deserialize;

/// A link, and like flows on it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FluidSpec {
    /// The algorithm whose rule it is.
    pub rule: FluidRule,
    /// Rate of the link.
    pub rate_mbps: f64,
    /// Size of the packets.
    pub packet_bytes: f64,
    /// Delay of the full queue.
    pub queue_ms: f64,
    /// Round-trip time without queueing.
    pub rtt_ms: f64,
    /// Number of flows.
    pub flows: u32,
    /// Queueing delay up to which there is no backoff.
    pub qmin_ms: f64,
    /// Queueing delay of the largest backoff probability.
    pub qth_ms: f64,
    /// Queueing delay at which the probability is 0 again.
    pub qmax_ms: f64,
    /// The largest backoff probability.
    pub pmax: f64,
    /// Part of the window that remains after a backoff; one half by default.
    #[serde(default = "half")]
    pub decrease: f64,
}

fn half() -> f64 {
    0.5
}

/// Rules of backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FluidRule {
    /// Per packet.
    Hd,
    /// Per round.
    Chd,
}

/// A chart's points per trajectory.
const POINTS: f64 = 400.0;

impl FluidSpec {
    fn link(&self) -> Link {
        Link {
            capacity_pps: self.rate_mbps * 1e6 / (8.0 * self.packet_bytes),
            queue_s: self.queue_ms / 1e3,
        }
    }

    fn class(&self) -> Class {
        let backoff = Backoff {
            qmin_s: self.qmin_ms / 1e3,
            qth_s: self.qth_ms / 1e3,
            qmax_s: self.qmax_ms / 1e3,
            pmax: self.pmax,
        };
        let decrease = self.decrease;
        Class {
            rtt_s: self.rtt_ms / 1e3,
            flows: self.flows,
            rule: match self.rule {
                FluidRule::Hd => Rule::PerPacket { backoff, decrease },
                FluidRule::Chd => Rule::PerRound { backoff, decrease },
            },
        }
    }

    fn model(&self) -> Result<Fluid, String> {
        Fluid::new(self.link(), self.class()).map_err(|e| e.to_string())
    }

    pub(super) fn equilibria(&self) -> Result<Vec<Equilibrium>, String> {
        Ok(self.model()?.equilibria())
    }

    /// Backoff function, locus of equilibria, and where they meet, over the queueing delay.
    pub(super) fn curves(&self, title: &str) -> Result<Chart, String> {
        let model = self.model()?;
        let delays = (0..=500).map(|i| self.queue_ms * f64::from(i) / 500.0);
        let curve = |of: &dyn Fn(f64) -> f64| {
            delays.clone().map(|ms| (ms, of(ms / 1e3))).collect::<Vec<_>>()
        };
        let mut series = vec![
            Series::new("backoff probability g", Style::Line, curve(&|s| model.probability(s))),
            Series::new("locus of equilibria p*", Style::Dashed, curve(&|s| model.locus(s))),
        ];
        for (name, stability) in [
            ("stable equilibrium", Stability::Stable),
            ("unstable equilibrium", Stability::Unstable),
        ] {
            let all = model.equilibria().into_iter().filter(|e| e.stability == stability);
            let points: Vec<_> = all.map(|e| (e.delay_s * 1e3, e.probability)).collect();
            if !points.is_empty() {
                series.push(Series::new(name, Style::Marks, points));
            }
        }
        Ok(Chart {
            title: format!("{title}, fluid model"),
            caption: format!(
                "{} flows, RTT {} ms, {} Mbit/s, packets of {} bytes.",
                self.flows, self.rtt_ms, self.rate_mbps, self.packet_bytes
            ),
            x: Axis::new("queueing delay (ms)"),
            y: Axis { min: Some(0.0), max: Some(2.0 * self.pmax), ..Axis::new("probability") },
            series,
            ..Chart::default()
        })
    }

    /// The queueing delay over `duration_s` from each of `starts_ms`, without and with feedback delay, and
    /// that of `simulated`.
    pub(super) fn trajectories(
        &self,
        title: &str,
        starts_ms: &[f64],
        duration_s: f64,
        simulated: Option<Series>,
    ) -> Result<Chart, String> {
        let model = self.model()?;
        let delayed = Delayed::new(self.link(), [self.class()]).map_err(|e| e.to_string())?;
        let step_s = duration_s / POINTS;
        let points = |all: Vec<knee_fluid::Point<1>>| {
            let shown = all.into_iter().take_while(|p| p.delay_s * 1e3 <= 1.2 * self.queue_ms);
            shown.map(|p| (p.t_s, p.delay_s * 1e3)).collect::<Vec<_>>()
        };
        let mut series: Vec<Series> = simulated.into_iter().collect();
        for (hue, start_ms) in (1..).zip(starts_ms) {
            let start = model.at_delay(start_ms / 1e3);
            let plain = model.trajectory(start, duration_s, step_s).map_err(|e| e.to_string())?;
            let name = format!("from {start_ms} ms");
            series.push(Series::new(&name, Style::Dashed, points(plain)).hue(hue));
            let with_delay = delayed
                .trajectory(start_ms / 1e3, &[start], duration_s, step_s)
                .map_err(|e| e.to_string())?;
            let name = format!("{name}, with feedback delay");
            series.push(Series::new(name, Style::Line, points(with_delay)).hue(hue));
        }
        for equilibrium in model.equilibria() {
            let at_ms = equilibrium.delay_s * 1e3;
            let name = match equilibrium.stability {
                Stability::Stable => "stable equilibrium",
                Stability::Unstable => "unstable equilibrium",
                Stability::Touching => "equilibrium",
            };
            let ends = [(0.0, at_ms), (duration_s, at_ms)];
            series.push(Series::new(name, Style::Dashed, ends));
        }
        Ok(Chart {
            title: format!("{title}, queueing delay of model and simulation"),
            x: Axis::new("time (s)"),
            y: Axis { min: Some(0.0), ..Axis::new("queueing delay (ms)") },
            series,
            ..Chart::default()
        })
    }
}

/// The points of `series` as they are, thinned to the number that a chart can show.
pub(super) fn thinned(series: Series) -> Series {
    let every = series.points.len().div_ceil(2000).max(1);
    let points: Vec<Point> = series.points.into_iter().step_by(every).collect();
    Series { points, ..series }
}
