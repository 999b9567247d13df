//! `knee lab`: serves the lab's page on loopback, and runs scenarios on the other hosts for it.
//!
//! - `/`: the page and its files.
//! - `/scenario.toml`: the scenario that was named.
//! - `/hosts.json`: hosts besides the simulator, which the page has itself.
//! - `POST /run?HOST`: runs the scenario in the body; server-sent events tell how far it is, and its
//!   figures at the end.
//! - `POST /cancel`: ends that run. So does a page that goes away.
//! - `POST /ask`: a request of the page's protocol about that run: a line of JSON, then the numbers. While
//!   the run is under way it has the rows that the host has told.
//!
//! A page of another origin can have none of it: hosts may be run as root.

use crate::{
    apart::{Apart, Said, said},
    hosts::AnyHost,
    integer, output,
};
use knee_model::{HostError, Ns, Progress, RunOptions, RunRecord, RunSpec};
use knee_scenario::Scenario;
use knee_web::{Answer, Refusal, Session, page, spec_to_draw};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Serialize;
use std::{
    io::{self, Read, Write},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc},
    thread,
    time::{Duration, Instant},
};
use tiny_http::{Header, Method, Request, Response, Server};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario to start with; default: the page's first
    scenario: Option<PathBuf>,
    /// Port on 127.0.0.1; 0: any free one
    #[arg(long, value_name = "N", default_value = "8642", value_parser = integer::<u16>(0..=65535), allow_hyphen_values = true)]
    port: u16,
    /// Print the address without opening a browser
    #[arg(long)]
    no_open: bool,
}

/// Interval between reports of a run's progress.
const TOLD_EVERY: Duration = Duration::from_millis(200);
/// Largest body of a request, bytes.
const BODY_MAX: u64 = 16 << 20;
/// Slot in which the page keeps a run of another host.
const SLOT: u32 = 3;

struct Lab {
    port: u16,
    scenario: Option<String>,
    session: Mutex<Session>,
    /// Held by the run that is under way.
    running: Mutex<()>,
    process: Mutex<Process>,
}

/// Process of the present run.
#[derive(Default)]
struct Process {
    apart: Option<Apart>,
    cancelled: bool,
}

#[derive(Serialize)]
struct HostShown {
    name: &'static str,
    about: &'static str,
}

/// Progress of a run, for the page.
#[derive(Serialize)]
struct SoFar {
    /// Time since the request.
    seconds: f64,
    /// Finished part of the run, if the host reports it.
    fraction: Option<f64>,
    /// True if rows can be requested.
    rows: bool,
}

/// Outcome of a run.
enum Outcome {
    Done(Answer),
    Cancelled,
}

pub(crate) fn lab(args: &Args) -> Result<ExitCode> {
    if page("index.html").is_none() {
        return Err(miette!(
            help = "run scripts/build-web.sh, then build knee again",
            "this program was built without the lab's page"
        ));
    }
    let scenario = match &args.scenario {
        Some(path) => Some(Scenario::load(path, &[])?.text().to_owned()),
        None => None,
    };
    let server = Server::http(("127.0.0.1", args.port)).map_err(|error| {
        miette!(
            help = "name another one with --port, or --port 0 for any free one",
            "cannot listen on port {} of 127.0.0.1: {error}",
            args.port
        )
    })?;
    let port = server.server_addr().to_ip().map_or(args.port, |address| address.port());
    let address = match scenario {
        Some(_) => format!("http://127.0.0.1:{port}/#file"),
        None => format!("http://127.0.0.1:{port}/"),
    };
    output::print(&format!("The lab is at {address}\nCtrl-C ends it.\n"))?;
    if !args.no_open {
        open(&address);
    }
    let lab = Arc::new(Lab {
        port,
        scenario,
        session: Mutex::default(),
        running: Mutex::new(()),
        process: Mutex::default(),
    });
    loop {
        let request = server.recv().into_diagnostic().wrap_err("the server stopped")?;
        let lab = Arc::clone(&lab);
        // A browser that goes away in the middle is no error.
        thread::spawn(move || drop(lab.answer(request)));
    }
}

/// Opens the address in the user's browser, if there is one.
fn open(address: &str) {
    let opened = Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match opened {
        Ok(mut child) => drop(thread::spawn(move || child.wait())),
        Err(_) => output::tell("no browser could be opened (xdg-open); open the address yourself"),
    }
}

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).expect("headers are ASCII")
}

fn content_type(file: &str) -> &'static str {
    match file.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn value<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    let header = request.headers().iter().find(|header| header.field.equiv(name));
    header.map(|header| header.value.as_str())
}

impl Lab {
    fn answer(&self, mut request: Request) -> io::Result<()> {
        if !self.is_ours(&request) {
            return plain(request, 403, "the lab answers its own page only");
        }
        let url = request.url().to_owned();
        let (path, query) = url.split_once('?').unwrap_or((&url, ""));
        match (request.method(), path) {
            (Method::Get, "/") => self.file(request, "index.html"),
            (Method::Get, path) => self.file(request, path.trim_start_matches('/')),
            (Method::Post, "/run" | "/ask") => {
                let mut body = Vec::new();
                request.as_reader().take(BODY_MAX).read_to_end(&mut body)?;
                match path {
                    "/ask" => self.ask(request, &body),
                    _ => self.run(request, query, &String::from_utf8_lossy(&body)),
                }
            }
            (Method::Post, "/cancel") => {
                self.cancel();
                plain(request, 200, "it ends")
            }
            _ => plain(request, 405, "GET, or POST to /run, /cancel and /ask"),
        }
    }

    /// True if the request was sent to this address, and by this page if it has an effect. Another
    /// site's page has another origin, and a name that leads here is another host.
    fn is_ours(&self, request: &Request) -> bool {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        let Some(host) = value(request, "Host").filter(|host| hosts.iter().any(|h| h == host))
        else {
            return false;
        };
        let own = format!("http://{host}");
        match value(request, "Origin") {
            Some(origin) => origin == own,
            None => *request.method() == Method::Get,
        }
    }

    fn file(&self, request: Request, name: &str) -> io::Result<()> {
        let content: Vec<u8> = match name {
            "scenario.toml" => match &self.scenario {
                Some(text) => text.clone().into_bytes(),
                None => return plain(request, 404, "no scenario was named"),
            },
            "hosts.json" => serde_json::to_vec(&hosts())?,
            // The page knows by this that it may ask for more than files.
            "index.html" => {
                let html = String::from_utf8_lossy(page(name).unwrap_or_default());
                html.replacen("<html ", "<html data-served=\"knee\" ", 1).into_bytes()
            }
            // Kept pages would outlive this program.
            "offline.js" => return plain(request, 404, "the lab of this program is not kept"),
            name => match page(name) {
                Some(content) => content.to_vec(),
                None => return plain(request, 404, "there is no such file"),
            },
        };
        let response = Response::from_data(content)
            .with_header(header("Content-Type", content_type(name)))
            .with_header(header("Cache-Control", "no-store"));
        request.respond(response)
    }

    /// A line of JSON, then the numbers as 64-bit floats, least byte first.
    fn ask(&self, request: Request, body: &[u8]) -> io::Result<()> {
        let Answer { text, numbers } = locked(&self.session).answer(body, &mut |_| ());
        let mut content = text.into_bytes();
        content.push(b'\n');
        content.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let response = Response::from_data(content)
            .with_header(header("Content-Type", "application/octet-stream"));
        request.respond(response)
    }

    /// Runs a scenario on the host `name`, and tells of it in server-sent events.
    fn run(&self, request: Request, name: &str, text: &str) -> io::Result<()> {
        let mut out = request.into_writer();
        out.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
              Connection: close\r\n\r\n",
        )?;
        match self.run_on(name, text, &mut out) {
            Ok(Outcome::Done(answer)) => tell(&mut out, "done", &answer.text),
            Ok(Outcome::Cancelled) => tell(&mut out, "cancelled", "null"),
            Err(refusal) => tell(&mut out, "refused", &serde_json::to_string(&refusal)?),
        }
    }

    fn run_on(&self, name: &str, text: &str, out: &mut impl Write) -> Result<Outcome, Refusal> {
        let _running = match self.running.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Refusal::new(
                    "another run is under way",
                    "wait for its end, or cancel it",
                ));
            }
        };
        *locked(&self.process) = Process::default();
        let Some(host) = AnyHost::all().find(|host| host.name() == name) else {
            return Err(Refusal::new(format!("there is no host {name:?}"), "reload the page"));
        };
        let spec = spec_to_draw(text)?;
        let refused =
            |error: HostError| Refusal::new(&error, error.help.as_deref().unwrap_or_default());
        host.check(&spec, &RunOptions::default()).map_err(refused)?;
        let begun = locked(&self.session).begin(SLOT, spec.clone());
        let told = tell(out, "begun", &begun.text);
        let ended = match told.and_then(|()| self.follow(name, &spec, out)) {
            Ok(ended) => ended,
            // Nobody is there any more.
            Err(_) => return Ok(Outcome::Cancelled),
        };
        match ended {
            Some(Ok(record)) => Ok(Outcome::Done(self.keep(spec, record))),
            Some(Err(error)) => Err(refused(error)),
            None if locked(&self.process).cancelled => Ok(Outcome::Cancelled),
            None => Err(Refusal::new("the run ended without a record", "see the terminal")),
        }
    }

    fn keep(&self, spec: RunSpec, record: RunRecord) -> Answer {
        locked(&self.session).add(SLOT, spec, record)
    }

    /// Ends the run that is under way, if there is one.
    fn cancel(&self) {
        let mut process = locked(&self.process);
        process.cancelled = true;
        process.apart = None;
    }

    /// Makes a run in another process. Takes in its reports until its end, and passes them to the page now
    /// and then. None: it ended without a result. In every case, the process is gone in the end.
    ///
    /// # Errors
    /// The page cannot be told.
    fn follow(
        &self,
        host: &str,
        spec: &RunSpec,
        out: &mut impl Write,
    ) -> io::Result<Option<Result<RunRecord, HostError>>> {
        let (apart, output) = Apart::start(host, spec)?;
        {
            let mut process = locked(&self.process);
            if process.cancelled {
                return Ok(None);
            }
            process.apart = Some(apart);
        }
        let (sender, heard) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                // Whoever no longer listens needs none of it.
                let _ = said(output).into_iter().flatten().try_for_each(|said| sender.send(said));
            });
            let ended = self.pass_on(&heard, spec.duration_ns, out);
            locked(&self.process).apart = None;
            ended
        })
    }

    fn pass_on(
        &self,
        heard: &mpsc::Receiver<Said>,
        duration_ns: Ns,
        out: &mut impl Write,
    ) -> io::Result<Option<Result<RunRecord, HostError>>> {
        let began = Instant::now();
        let mut so_far = SoFar { seconds: 0.0, fraction: None, rows: false };
        let mut due = began + TOLD_EVERY;
        loop {
            match heard.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Said::Ended(made)) => {
                    let first = |all: Vec<_>| all.into_iter().next().map(|(record, _)| record);
                    return Ok(made.records.map(first).transpose());
                }
                Ok(Said::Told(told)) => {
                    match told {
                        Progress::At(ns) => {
                            so_far.fraction = Some((ns as f64 / duration_ns as f64).min(1.0));
                        }
                        Progress::Again => (so_far.fraction, so_far.rows) = (None, false),
                        Progress::Flow { .. } | Progress::Queue { .. } => so_far.rows = true,
                    }
                    locked(&self.session).tell(SLOT, told);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= due {
                so_far.seconds = began.elapsed().as_secs_f64();
                tell(out, "progress", &serde_json::to_string(&so_far)?)?;
                due = Instant::now() + TOLD_EVERY;
            }
        }
    }
}

/// Sends a server-sent event. JSON has no line break.
fn tell(out: &mut impl Write, event: &str, json: &str) -> io::Result<()> {
    write!(out, "event: {event}\ndata: {json}\n\n")?;
    out.flush()
}

fn plain(request: Request, status: u16, text: &str) -> io::Result<()> {
    let response = Response::from_string(format!("{text}\n")).with_status_code(status);
    request.respond(response)
}

/// The hosts besides the simulator.
fn hosts() -> Vec<HostShown> {
    let others = AnyHost::all().filter(|host| *host != AnyHost::default());
    let shown = |host: AnyHost| HostShown { name: host.name(), about: host.about() };
    others.map(shown).collect()
}
