//! `knee testbed`.

use crate::{Format, hosts, output};
use clap::{Subcommand, ValueEnum};
use knee_model::{BurstLoss, PathSpec};
use knee_report::table::Table;
use knee_scenario::{
    Scenario, Set,
    units::{PACKETS, RATE, TIME, show_queue},
};
use knee_testbed::{
    End, Passed,
    shell::{self, Listed, ShellError, Status},
};
use miette::{IntoDiagnostic, Report, Result, WrapErr, miette};
use nix::unistd::{
    Uid, User, daemon, dup2_stderr, dup2_stdin, dup2_stdout, geteuid, initgroups, setgid, setuid,
};
use std::{
    env,
    ffi::{CString, OsString},
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf, absolute},
    process::{Command, ExitCode},
};

#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  knee testbed up scenarios/chd/single-flow.toml --set path.rate=20mbit
  knee testbed exec receiver -- iperf3 -s -1 &
  knee testbed exec sender -- iperf3 -c 10.2.0.1 -C cubic
  knee testbed list
  knee testbed down
All need root. More in docs/how-to/emulate-a-path.md.";

#[derive(Subcommand)]
enum What {
    /// Create the two ends and the path between them; a background process keeps them
    ///
    /// Only the scenario's path table counts. Its flows are not run, and their access delays are not
    /// part of the path.
    Up(Up),
    /// Run a program on one of the two ends
    ///
    /// The exit code is the program's. Under sudo it runs as the user who called sudo.
    Exec {
        /// Name of the path
        #[arg(long = "as", value_name = "NAME", default_value = shell::DEFAULT_NAME)]
        name: String,
        /// Run it as this user (name or number)
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// The end
        end: ExecEnd,
        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// List the running paths and their traffic
    List {
        /// Output format
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// End a path; programs on its ends lose their network
    Down {
        /// Name of the path
        #[arg(default_value = shell::DEFAULT_NAME)]
        name: String,
    },
    /// Remove the remains of killed paths
    Clean,
}

#[derive(clap::Args)]
struct Up {
    /// The scenario, as for `knee run`
    scenario: PathBuf,
    /// Override a value of the scenario, as in path.rate=5mbit; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Name, for several paths at once: 1 to 32 of a-z, 0-9, - and _
    #[arg(long = "as", value_name = "NAME", default_value = shell::DEFAULT_NAME)]
    name: String,
    /// Seed of losses and jitter (overrides the scenario)
    #[arg(long, value_name = "N", value_parser = crate::integer::<u64>(0..=i64::MAX as u64), allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Write all packets to this new file for Wireshark (pcapng); complete after `down`
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Stay until Ctrl-C or `knee testbed down`
    #[arg(long)]
    foreground: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ExecEnd {
    /// Its packets take the forward path, through the bottleneck
    Sender,
    /// Its packets take the reverse path
    Receiver,
}

pub(crate) fn testbed(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Up(args) => hold(args),
        What::Exec { name, user, end, command } => exec(name, user.as_deref(), *end, command),
        What::List { format } => list(*format),
        What::Down { name } => {
            let status = shell::down(name).map_err(told)?;
            match &status.failure {
                Some(why) => Err(miette!("the path {name} has failed: {why}")),
                None => output::print(&ended(&status)),
            }
        }
        What::Clean => {
            let cleaned = shell::clean().map_err(told)?;
            output::print(&match &cleaned[..] {
                [] => "nothing to remove\n".to_owned(),
                names => format!("removed the remains of {}\n", names.join(", ")),
            })
        }
    }
}

/// Makes a path and holds it until its end.
fn hold(args: &Up) -> Result<ExitCode> {
    let sets = args.set.iter().map(|s| Set::parse(s)).collect::<Result<Vec<_>, _>>()?;
    let scenario = Scenario::load(&args.scenario, &sets)?;
    let seed = args.seed.unwrap_or(scenario.seed());
    let path = scenario.spec(seed).path;
    let pcap = args.pcap.as_deref().map(absolute).transpose().into_diagnostic()?;
    // It is opened before the command says "up": afterwards nobody would see the error.
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.into_diagnostic().wrap_err("cannot open /dev/null")?;
    let up = shell::up(&args.name, &path, seed, about(&path), pcap.as_deref()).map_err(told)?;
    output::print(&greeting(args, &path))?;
    if !args.foreground {
        // The command ends here; its child, without terminal, folder and output, holds the path.
        daemon(false, true)
            .and_then(|()| dup2_stdin(&null))
            .and_then(|()| dup2_stdout(&null))
            .and_then(|()| dup2_stderr(&null))
            .into_diagnostic()
            .wrap_err("cannot leave the terminal")?;
    }
    // The first request needs a descriptor.
    drop(null);
    let status = up.serve().map_err(told)?;
    if args.foreground { output::print(&ended(&status)) } else { Ok(ExitCode::SUCCESS) }
}

fn about(path: &PathSpec) -> String {
    let first = &path.hops[0];
    let rtt_ns = path.delay_forward_ns + path.delay_reverse_ns;
    let mut about = format!(
        "{}, {}, {}",
        RATE.show(first.rate_bps),
        TIME.show(rtt_ns),
        show_queue(first.queue)
    );
    if let Some(aqm) = &first.aqm {
        about += &format!(" {}", aqm.discipline.title());
    }
    for (hop, number) in path.hops.iter().zip(1..).skip(1) {
        about += &format!(
            "; hop {number}: {}, {}, {}",
            RATE.show(hop.rate_bps),
            TIME.show(2 * hop.delay_ns),
            show_queue(hop.queue)
        );
        if let Some(aqm) = &hop.aqm {
            about += &format!(" {}", aqm.discipline.title());
        }
    }
    let mut add = |there: bool, what: String| {
        if there {
            about += &format!(", {what}");
        }
    };
    let percent = |p: f64| format!("{} %", p * 100.0);
    add(first.loss > 0.0, format!("loss {}", percent(first.loss)));
    add(path.loss_reverse > 0.0, format!("reverse loss {}", percent(path.loss_reverse)));
    add(path.jitter_forward_ns > 0, format!("jitter {}", TIME.show(path.jitter_forward_ns)));
    add(
        path.jitter_reverse_ns > 0,
        format!("reverse jitter {}", TIME.show(path.jitter_reverse_ns)),
    );
    add(path.noise_ns > 0, format!("noise {}", TIME.show(path.noise_ns)));
    let bursts = |loss: &Option<BurstLoss>| percent(loss.map_or(0.0, |loss| loss.mean_loss()));
    add(first.bursts.is_some(), format!("bursts of loss {}", bursts(&first.bursts)));
    add(
        path.bursts_reverse.is_some(),
        format!("reverse bursts of loss {}", bursts(&path.bursts_reverse)),
    );
    if let Some(reorder) = &path.reorder {
        let late = TIME.show(reorder.extra_delay_ns);
        add(true, format!("{} {late} late", percent(reorder.probability)));
    }
    if let Some(link) = &path.reverse {
        add(true, format!("reverse {}, {}", RATE.show(link.rate_bps), show_queue(link.queue)));
    }
    let steps = path.delay_forward_steps.len() + path.delay_reverse_steps.len();
    add(first.rate_varies.is_some(), "changing rate".to_owned());
    add(steps > 0, "changing delay".to_owned());
    about
}

fn greeting(args: &Up, path: &PathSpec) -> String {
    let name = match args.name.as_str() {
        shell::DEFAULT_NAME => String::new(),
        name => format!(" --as {name}"),
    };
    let end = match (args.foreground, args.name.as_str()) {
        (true, _) => "press Ctrl-C".to_owned(),
        (false, shell::DEFAULT_NAME) => "knee testbed down".to_owned(),
        (false, name) => format!("knee testbed down {name}"),
    };
    let [a4, a6] = End::Sender.addresses();
    let [b4, b6] = End::Receiver.addresses();
    format!(
        "up: {}\n  sender    {a4}  {a6}\n  receiver  {b4}  {b6}\nPackets from the sender pass the \
         bottleneck. Run programs on both:\n  knee testbed exec{name} receiver -- iperf3 -s -1 &\n  \
         knee testbed exec{name} sender -- iperf3 -c {b4}\nEnd it: {end}\n",
        about(path)
    )
}

fn exec(name: &str, user: Option<&str>, end: ExecEnd, command: &[OsString]) -> Result<ExitCode> {
    let end = match end {
        ExecEnd::Sender => End::Sender,
        ExecEnd::Receiver => End::Receiver,
    };
    let user = user_of(user)?;
    shell::enter(name, end).map_err(told)?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(miette!("name a program"));
    };
    let mut run = Command::new(program);
    run.args(arguments);
    if let Some(user) = user {
        become_user(&user).into_diagnostic().wrap_err(format!("cannot run as {}", user.name))?;
        run.env("USER", &user.name).env("LOGNAME", &user.name).env("HOME", &user.dir);
    }
    // From here on this process is that program: its exit code and its signals are its own.
    let error = run.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    let program = Path::new(program).display();
    let help = "give a program that exists on this machine, and its arguments, after --";
    output::tell(&format!("{:?}", miette!(help = help, "cannot run {program}: {error}")));
    Ok(ExitCode::from(code))
}

/// The user to become: the one that was named, or the one who called sudo; none: stay.
fn user_of(named: Option<&str>) -> Result<Option<User>> {
    let sudo = env::var("SUDO_UID").ok().filter(|_| geteuid().is_root());
    let Some(wanted) = named.or(sudo.as_deref()) else { return Ok(None) };
    let found = match wanted.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(wanted),
    };
    let found = found.into_diagnostic().wrap_err("cannot look up users")?;
    let help = "give a name or a number that `getent passwd` shows";
    found.map(Some).ok_or_else(|| miette!(help = help, "no such user: {wanted}"))
}

fn become_user(user: &User) -> std::io::Result<()> {
    initgroups(&CString::new(user.name.as_bytes())?, user.gid)?;
    setgid(user.gid)?;
    setuid(user.uid)?;
    Ok(())
}

fn us(ns: f64) -> String {
    format!("{:.0} us", ns / 1e3)
}

fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

/// A summary of the packets that passed.
fn ended(status: &Status) -> String {
    let Passed {
        time_ns,
        forward_pkts,
        delivered_pkts,
        delivered_bytes,
        queue_drops_pkts,
        random_losses_pkts,
        reverse_pkts,
        reverse_losses_pkts,
        reverse_drops_pkts,
        queue_max_pkts,
        queue_delay_ns: [median, p95, p99, largest],
        lateness,
        ..
    } = &status.passed;
    let time_s = (*time_ns as f64 / 1e9).max(1e-9);
    format!(
        "{}: {}, {time_s:.1} s\n  to the receiver  {forward_pkts} packets: {delivered_pkts} \
         delivered, {queue_drops_pkts} dropped, {random_losses_pkts} lost; {:.3} Mbit/s\n  to the \
         sender    {reverse_pkts} packets: {reverse_drops_pkts} dropped, {reverse_losses_pkts} lost\n  queueing delay   median {} ms, \
         95 % {} ms, 99 % {} ms, largest {} ms; at most {}\n  lateness         mean {}, 99 % {}, \
         largest {}\n",
        status.name,
        status.about,
        *delivered_bytes as f64 * 8e-6 / time_s,
        ms(*median),
        ms(*p95),
        ms(*p99),
        ms(*largest),
        PACKETS.show((*queue_max_pkts).into()),
        us(lateness.mean_ns as f64),
        us(lateness.p99_ns as f64),
        us(lateness.max_ns as f64),
    )
}

/// An error for people, with its remedy.
fn told(error: ShellError) -> Report {
    match error {
        ShellError::Other(error) => hosts::report(error),
        error => miette!("{error}"),
    }
}

fn list(format: Format) -> Result<ExitCode> {
    let listed = shell::list().map_err(told)?;
    if format == Format::Json {
        return output::print_json(&listed);
    }
    if listed.is_empty() {
        return output::print("no path is up; `knee testbed up SCENARIO` creates one\n");
    }
    let mut table = Table::new(
        "Emulated paths",
        &["name", "path", "state"],
        &["up", "packets", "dropped", "lost", "queue", "lateness 99 %"],
    );
    for one in &listed {
        let plain = |name: &str, state: String| {
            let [a, b, c, d, e, f] = ["-"; 6].map(str::to_owned);
            [name.to_owned(), "-".to_owned(), state, a, b, c, d, e, f]
        };
        table.row(match one {
            Listed::Left(name) => plain(name, "killed; run `knee testbed clean`".to_owned()),
            Listed::Silent(name, why) => plain(name, why.clone()),
            Listed::Running(status) => {
                let p = &status.passed;
                let state = status.failure.as_ref().map_or("up".into(), |w| format!("failed: {w}"));
                [
                    status.name.clone(),
                    status.about.clone(),
                    state,
                    format!("{:.0} s", p.time_ns as f64 / 1e9),
                    (p.forward_pkts + p.reverse_pkts).to_string(),
                    (p.queue_drops_pkts + p.reverse_drops_pkts).to_string(),
                    (p.random_losses_pkts + p.reverse_losses_pkts).to_string(),
                    PACKETS.show(p.queue_pkts.into()),
                    us(p.lateness.p99_ns as f64),
                ]
            }
        });
    }
    output::print(&table.to_text(output::width()))
}
