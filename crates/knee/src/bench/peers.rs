//! `knee bench peers`: the same dumbbell in Knee and in other simulators.

use super::values::{queue, rate, time};
use crate::{Format, integer, output};
use knee_model::{Ns, QueueLimit, milliseconds, seconds};
use knee_report::table::Table;
use knee_results::metrics::percentile;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Serialize;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

const NS2: &str = include_str!("../../peers/ns2-dumbbell.tcl");
const NS3: &str = include_str!("../../peers/ns3-dumbbell.cc");

/// Libraries of the program for ns-3.
const NS3_LIBRARIES: [&str; 7] = [
    "-lns3-core",
    "-lns3-network",
    "-lns3-internet",
    "-lns3-point-to-point",
    "-lns3-applications",
    "-lns3-traffic-control",
    "-lns3-stats",
];

#[derive(clap::Args)]
pub(super) struct Peers {
    /// Pairs of runs: a peer, then Knee
    #[arg(long, value_name = "N", default_value = "9", value_parser = integer::<u32>(1..=1000), allow_hyphen_values = true)]
    pairs: u32,
    /// Number of flows
    #[arg(long, value_name = "N", default_value = "16", value_parser = integer::<u32>(1..=200), allow_hyphen_values = true)]
    flows: u32,
    /// Rate of the bottleneck
    #[arg(long, default_value = "100mbit", value_parser = rate, allow_hyphen_values = true)]
    rate: u64,
    /// Round-trip time without queueing
    #[arg(long, default_value = "40ms", value_parser = time, allow_hyphen_values = true)]
    rtt: Ns,
    /// Limit of the bottleneck's queue in packets, as 333p
    #[arg(long, default_value = "333p", value_parser = packets, allow_hyphen_values = true)]
    queue: u32,
    /// Simulated time
    #[arg(long, default_value = "60s", value_parser = time, allow_hyphen_values = true)]
    duration: Ns,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

fn packets(text: &str) -> Result<u32, String> {
    match queue(text)? {
        QueueLimit::Packets(pkts) => Ok(pkts),
        _ => Err("write it in packets, as 333p: the peers count them".to_owned()),
    }
}

/// Another simulator.
struct Peer {
    name: &'static str,
    /// Debian package that has it.
    package: &'static str,
    /// Prepares its program in a folder; the start of its command line, or nothing if it is not
    /// installed.
    prepare: fn(&Path) -> Result<Option<Vec<PathBuf>>>,
    /// Its arguments for a run.
    arguments: fn(&Peers) -> Vec<String>,
}

const PEERS: [Peer; 2] = [
    Peer { name: "ns-2", package: "ns2", prepare: prepare_ns2, arguments: Peers::of_ns2 },
    Peer { name: "ns-3", package: "libns3-dev", prepare: prepare_ns3, arguments: Peers::of_ns3 },
];

impl Peers {
    fn rate_mbps(&self) -> f64 {
        self.rate as f64 / 1e6
    }

    fn rtt_ms(&self) -> f64 {
        milliseconds(self.rtt)
    }

    fn duration_s(&self) -> f64 {
        seconds(self.duration)
    }

    fn of_ns2(&self) -> Vec<String> {
        let (rate, rtt) = (self.rate_mbps(), self.rtt_ms());
        let numbers = [f64::from(self.flows), rate, rtt, f64::from(self.queue), self.duration_s()];
        ["sack".to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
    }

    fn of_ns3(&self) -> Vec<String> {
        vec![
            format!("--n={}", self.flows),
            format!("--rate={}", self.rate_mbps()),
            format!("--rtt={}", self.rtt_ms()),
            format!("--q={}", self.queue),
            format!("--dur={}", self.duration_s()),
        ]
    }

    /// The same run in Knee.
    fn of_knee(&self) -> Result<Vec<PathBuf>> {
        let knee =
            env::current_exe().into_diagnostic().wrap_err("cannot find the program itself")?;
        let arguments = [
            "bench",
            "dumbbell",
            "--format",
            "json",
            "--flows",
            &self.flows.to_string(),
            "--rate",
            &format!("{}bit", self.rate),
            "--rtt",
            &format!("{}ns", self.rtt),
            "--queue",
            &format!("{}p", self.queue),
            "--duration",
            &format!("{}ns", self.duration),
        ]
        .map(PathBuf::from);
        Ok([knee].into_iter().chain(arguments).collect())
    }
}

/// Path of a program, if it is installed.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    let wrote = fs::write(&file, text).into_diagnostic();
    wrote.wrap_err_with(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn prepare_ns2(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let Some(ns) = find("ns") else { return Ok(None) };
    Ok(Some(vec![ns, write(folder, "ns2-dumbbell.tcl", NS2)?]))
}

fn prepare_ns3(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let Some(compiler) = find("g++") else { return Ok(None) };
    let probe = write(folder, "probe.cc", "#include \"ns3/core-module.h\"\n")?;
    let quiet = |command: &mut Command| {
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !quiet(Command::new(&compiler).arg("-E").arg(probe)) {
        return Ok(None);
    }
    let source = write(folder, "ns3-dumbbell.cc", NS3)?;
    let program = folder.join("ns3-dumbbell");
    output::tell("compiling the program for ns-3");
    let mut command = Command::new(&compiler);
    command.arg("-O2").arg(source).arg("-o").arg(&program).args(NS3_LIBRARIES);
    let out = command.output().into_diagnostic().wrap_err("cannot run g++")?;
    if !out.status.success() {
        let help = "the program is written for ns-3.37";
        let said = String::from_utf8_lossy(&out.stderr);
        return Err(miette!(help = help, "the program for ns-3 does not compile: {said}"));
    }
    Ok(Some(vec![program]))
}

/// Wall-clock time of a command, and its output.
fn timed(command: &[PathBuf], arguments: &[String]) -> Result<(f64, String)> {
    let (program, first) = command.split_first().ok_or_else(|| miette!("no command"))?;
    let start = Instant::now();
    let out = Command::new(program).args(first).args(arguments).output();
    let wall_s = start.elapsed().as_secs_f64();
    let name = program.display();
    let out = out.into_diagnostic().wrap_err_with(|| format!("cannot run {name}"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        return Err(miette!("{name} failed ({}): {}", out.status, said.trim()));
    }
    Ok((wall_s, String::from_utf8_lossy(&out.stdout).into_owned()))
}

/// The packets of a peer's line `delivered pkts N`.
fn delivered(printed: &str) -> Option<f64> {
    let line = printed.lines().find_map(|line| line.strip_prefix("delivered pkts "))?;
    line.trim().parse().ok().filter(|pkts| *pkts > 0.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    percentile(&values, 0.5).unwrap_or(f64::NAN)
}

/// A pair of runs of whole processes.
#[derive(Serialize)]
struct Pair {
    peer_s: f64,
    knee_s: f64,
}

/// A peer against Knee; medians over all pairs.
#[derive(Serialize)]
struct Comparison {
    peer: &'static str,
    /// The peer's time by Knee's.
    ratio: f64,
    peer_ns_per_delivered_pkt: f64,
    knee_ns_per_delivered_pkt: f64,
    pairs: Vec<Pair>,
}

#[derive(Serialize)]
struct Missing {
    peer: &'static str,
    /// Debian package that has it.
    package: &'static str,
}

/// Conditions of the measurement other than the programs.
#[derive(Serialize)]
struct Machine {
    cpu: String,
    cores: usize,
    system: String,
}

impl Machine {
    fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name"));
        let cpu = model.map_or(env::consts::ARCH, |m| m.trim_start_matches([' ', '\t', ':']));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: cpu.trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            system: format!("{} {}", env::consts::OS, release.trim()).trim().to_owned(),
        }
    }
}

#[derive(Serialize)]
struct Outcome {
    machine: Machine,
    flows: u32,
    rate_bps: u64,
    rtt_ns: Ns,
    queue_pkts: u32,
    duration_ns: Ns,
    peers: Vec<Comparison>,
    missing: Vec<Missing>,
}

impl Peers {
    pub(super) fn bench(&self) -> Result<ExitCode> {
        let cannot = || "cannot make a folder for temporary files (TMPDIR)";
        let folder = tempfile::Builder::new().prefix("knee-peers-").tempdir();
        let folder = folder.into_diagnostic().wrap_err_with(cannot)?;
        let outcome = self.compare(folder.path())?;
        output::show(self.format, &outcome, || outcome.text())
    }

    fn compare(&self, folder: &Path) -> Result<Outcome> {
        let mut outcome = Outcome {
            machine: Machine::this(),
            flows: self.flows,
            rate_bps: self.rate,
            rtt_ns: self.rtt,
            queue_pkts: self.queue,
            duration_ns: self.duration,
            peers: Vec::new(),
            missing: Vec::new(),
        };
        let knee = self.of_knee()?;
        for peer in &PEERS {
            match (peer.prepare)(folder)? {
                Some(command) => outcome.peers.push(self.pairs_with(peer, &command, &knee)?),
                None => {
                    outcome.missing.push(Missing { peer: peer.name, package: peer.package });
                }
            }
        }
        Ok(outcome)
    }

    /// One after the other in turn, so that a change in the machine's speed hits both.
    fn pairs_with(&self, peer: &Peer, command: &[PathBuf], knee: &[PathBuf]) -> Result<Comparison> {
        let arguments = (peer.arguments)(self);
        // A first run finds the programs in the cache of files as all others do.
        timed(knee, &[])?;
        let (mut pairs, mut peer_ns, mut knee_ns) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.pairs {
            let (peer_s, printed) = timed(command, &arguments)?;
            let peer_pkts = delivered(&printed)
                .ok_or_else(|| miette!("{} delivered nothing: {}", peer.name, printed.trim()))?;
            let (knee_s, printed) = timed(knee, &[])?;
            let json: serde_json::Value = serde_json::from_str(&printed).into_diagnostic()?;
            let knee_pkts = json["delivered_pkts"].as_f64().filter(|pkts| *pkts > 0.0);
            let knee_pkts = knee_pkts.ok_or_else(|| miette!("Knee delivered nothing"))?;
            peer_ns.push(peer_s * 1e9 / peer_pkts);
            knee_ns.push(knee_s * 1e9 / knee_pkts);
            pairs.push(Pair { peer_s, knee_s });
        }
        Ok(Comparison {
            peer: peer.name,
            ratio: median(pairs.iter().map(|pair| pair.peer_s / pair.knee_s).collect()),
            peer_ns_per_delivered_pkt: median(peer_ns),
            knee_ns_per_delivered_pkt: median(knee_ns),
            pairs,
        })
    }
}

impl Outcome {
    fn text(&self) -> String {
        let mut text = String::new();
        if !self.peers.is_empty() {
            let numeric = ["ratio", "ns per packet", "Knee's", "least ratio", "largest"];
            let mut table = Table::new("Whole processes, medians", &["peer"], &numeric);
            for peer in &self.peers {
                let ratios = peer.pairs.iter().map(|pair| pair.peer_s / pair.knee_s);
                table.row([
                    peer.peer.to_owned(),
                    format!("{:.1}", peer.ratio),
                    format!("{:.0}", peer.peer_ns_per_delivered_pkt),
                    format!("{:.1}", peer.knee_ns_per_delivered_pkt),
                    format!("{:.1}", ratios.clone().fold(f64::INFINITY, f64::min)),
                    format!("{:.1}", ratios.fold(0.0, f64::max)),
                ]);
            }
            text.push_str(&table.to_text(output::width()));
        }
        for Missing { peer, package } in &self.missing {
            text.push_str(&format!("{peer} is not installed: Debian package {package}\n"));
        }
        let Machine { cpu, cores, system } = &self.machine;
        text.push_str(&format!("{cpu}, {cores} cores, {system}\n"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_peers_is_read() {
        assert_eq!(delivered("warning\ndelivered pkts 500123\n"), Some(500_123.0));
        assert_eq!(delivered("delivered pkts 0\n"), None);
        assert_eq!(delivered("Mbps 3\n"), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
