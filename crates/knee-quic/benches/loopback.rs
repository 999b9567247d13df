//! Bulk transfers over the loopback interface: Knee's algorithms against quinn's own NewReno and
//! CUBIC, in goodput and in CPU time.
//!
//! ```sh
//! cargo bench -p knee-quic --bench loopback -- --rounds 10 --mb 200
//! ```
//!
//! In every round each algorithm runs between the two references, in alternating order, so that
//! both of a pair see the same machine. CPU time is that of the whole process, both ends. Receive
//! buffers hold whatever the flow control allows: nothing is lost.

use knee_quic::CongestionControl;
use nix::sys::{
    resource::{UsageWho, getrusage},
    socket::{setsockopt, sockopt},
    time::{TimeVal, TimeValLike},
};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
    congestion::{ControllerFactory, CubicConfig, NewRenoConfig},
    rustls,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::{
    error::Error,
    net::{Ipv4Addr, UdpSocket},
    sync::Arc,
    time::Instant,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Factory = Arc<dyn ControllerFactory + Send + Sync>;

const NAME: &str = "knee.example";
/// Limit of bytes in flight; a receive buffer that holds it with all overhead.
const RECEIVE_WINDOW_BYTES: u32 = 1 << 20;
const BUFFER_BYTES: usize = 8 << 20;
const CHUNK_BYTES: usize = 64 << 10;

/// One transfer.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
    lost_pkts: u64,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: usize| -> Result<usize> {
        match args.iter().position(|a| a == name) {
            Some(at) => Ok(args.get(at + 1).ok_or(format!("{name} needs a number"))?.parse()?),
            None => Ok(default),
        }
    };
    // Cargo's tests run benchmarks too, without this: then only that they work.
    let is_bench = args.iter().any(|a| a == "--bench");
    let rounds = number("--rounds", if is_bench { 10 } else { 1 })?;
    let mb = number("--mb", if is_bench { 200 } else { 1 })?;
    let only = args.iter().position(|a| a == "--only").and_then(|at| args.get(at + 1));

    let references: [(&str, Factory); 2] = [
        ("quinn's NewReno", Arc::new(NewRenoConfig::default())),
        ("quinn's CUBIC", Arc::new(CubicConfig::default())),
    ];
    println!("{mb} MB, {rounds} rounds; ratio ours / theirs: median [20th, 80th percentile]");
    println!(
        "| algorithm | against | goodput | CPU time | goodput ours (Mbit/s) | lost (packets) |"
    );
    println!("|---|---|---|---|---|---|");
    // Once for the caches.
    transfer(references[0].1.clone(), mb)?;
    for algorithm in knee_cc::algorithms() {
        if only.is_some_and(|name| name != algorithm.name()) {
            continue;
        }
        let ours: Factory = Arc::new(CongestionControl::new(algorithm.name())?);
        let mut pairs = [Vec::new(), Vec::new()];
        let mut lost_pkts = 0;
        for round in 0..rounds {
            for (which, (_, theirs)) in references.iter().enumerate() {
                let (a, b) = if (round + which) % 2 == 0 {
                    let a = transfer(ours.clone(), mb)?;
                    (a, transfer(theirs.clone(), mb)?)
                } else {
                    let b = transfer(theirs.clone(), mb)?;
                    (transfer(ours.clone(), mb)?, b)
                };
                lost_pkts += a.lost_pkts;
                pairs[which].push((a, b));
            }
        }
        for ((name, _), pairs) in references.iter().zip(&pairs) {
            let goodput = spread(pairs.iter().map(|(a, b)| b.seconds / a.seconds));
            let cpu = spread(pairs.iter().map(|(a, b)| a.cpu_seconds / b.cpu_seconds));
            let mut mbits: Vec<_> =
                pairs.iter().map(|(a, _)| mb as f64 * 8.0 / a.seconds).collect();
            mbits.sort_by(f64::total_cmp);
            println!(
                "| {} | {name} | {goodput} | {cpu} | {:.0} | {lost_pkts} |",
                algorithm.name(),
                mbits[mbits.len() / 2],
            );
        }
    }
    Ok(())
}

/// Median and percentiles in words.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    format!("{:.3} [{:.3}, {:.3}]", at(0.5), at(0.2), at(0.8))
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 * 1e-6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    // Beyond the system's limit only as root; without it packets may be lost, which is reported.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES)?;
    }
    Ok(socket)
}

fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint> {
    let config = EndpointConfig::default();
    Ok(Endpoint::new(config, server, socket()?, Arc::new(TokioRuntime))?)
}

fn transport(cc: Option<Factory>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW_BYTES));
    if let Some(cc) = cc {
        transport.congestion_controller_factory(cc);
    }
    Arc::new(transport)
}

/// Sends so much with this congestion control; both ends in one thread.
fn transfer(cc: Factory, mb: usize) -> Result<Cost> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let der = CertificateDer::from(made.cert);
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut config = ServerConfig::with_single_cert(vec![der.clone()], key.into())?;
        config.transport_config(transport(None));
        let server = endpoint(Some(config))?;
        let address = server.local_addr()?;
        let receiver = tokio::spawn(async move {
            let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
            let mut stream = connection.accept_uni().await?;
            let mut bytes = 0;
            while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
                bytes += chunk.bytes.len();
            }
            connection.close(0u32.into(), b"");
            server.wait_idle().await;
            Ok::<usize, Box<dyn Error + Send + Sync>>(bytes)
        });

        let mut roots = rustls::RootCertStore::empty();
        roots.add(der)?;
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(transport(Some(cc)));
        let client = endpoint(None)?;
        let connection = client.connect_with(config, address, NAME)?.await?;
        let mut stream = connection.open_uni().await?;
        let (start, cpu) = (Instant::now(), cpu_seconds()?);
        let chunk = vec![0u8; CHUNK_BYTES];
        let mut left = mb * 1_000_000;
        while left > 0 {
            let step = left.min(chunk.len());
            stream.write_all(&chunk[..step]).await?;
            left -= step;
        }
        stream.finish()?;
        // The receiver closes when it has all.
        connection.closed().await;
        let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
        let lost_pkts = connection.stats().path.lost_packets;
        client.wait_idle().await;
        if receiver.await?? != mb * 1_000_000 {
            return Err("not all bytes arrived".into());
        }
        Ok(Cost { seconds, cpu_seconds, lost_pkts })
    })
}
