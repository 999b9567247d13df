//! A client sends a file to a server over QUIC, with a congestion control of your choice.
//!
//! ```sh
//! cargo run --release -p knee-quic --example transfer -- both --cc chd --set qth=20ms
//! cargo run --release -p knee-quic --example transfer -- server 0.0.0.0:4433
//! cargo run --release -p knee-quic --example transfer -- client HOST:4433 --cert cert.der --file big
//! ```
//!
//! The server writes its certificate, made for this run, to `cert.der`; the client trusts just that one. The
//! server answers with the SHA-256 of the received data, which the client compares.

use clap::{Parser, Subcommand};
use knee_quic::CongestionControl;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use quinn::{congestion::ControllerFactory, rustls};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::io::{AsyncRead, AsyncReadExt};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Name in the server's certificate.
const NAME: &str = "knee.example";
/// The client's reading step, bytes.
const STEP: usize = 64 * 1024;

/// Sends a file over QUIC with one of Knee's congestion controls.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// Receives files until it is interrupted
    Server {
        /// Address to listen on
        #[arg(default_value = "127.0.0.1:4433")]
        listen: SocketAddr,
        /// File for the certificate
        #[arg(long, default_value = "cert.der")]
        cert: PathBuf,
    },
    /// Sends one file
    Client {
        /// The server's address
        server: SocketAddr,
        /// The server's certificate
        #[arg(long, default_value = "cert.der")]
        cert: PathBuf,
        #[command(flatten)]
        what: What,
    },
    /// Server and client in this process, over the loopback interface
    Both {
        #[command(flatten)]
        what: What,
    },
}

#[derive(clap::Args)]
struct What {
    /// Algorithm, one of `knee list`
    #[arg(long, default_value = "chd")]
    cc: String,
    /// A parameter, as in qth=20ms; may be repeated
    #[arg(long, value_name = "PARAM=VALUE")]
    set: Vec<String>,
    /// File to send; without it, --mb of zeros
    #[arg(long)]
    file: Option<PathBuf>,
    /// Megabytes to send if no file is given
    #[arg(long, default_value_t = 200)]
    mb: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    match Args::parse().mode {
        Mode::Server { listen, cert } => {
            let (config, der) = server_config()?;
            tokio::fs::write(&cert, &der).await?;
            let endpoint = Endpoint::server(config, listen)?;
            println!("listening on {}, certificate in {}", endpoint.local_addr()?, cert.display());
            serve(endpoint).await
        }
        Mode::Client { server, cert, what } => {
            let der = tokio::fs::read(&cert).await?.into();
            send(server, der, &what).await
        }
        Mode::Both { what } => {
            let (config, der) = server_config()?;
            let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
            let address = endpoint.local_addr()?;
            let server = tokio::spawn(serve(endpoint));
            let sent = send(address, der, &what).await;
            server.abort();
            sent
        }
    }
}

/// The congestion control chosen by the options.
fn congestion_control(what: &What) -> Result<CongestionControl> {
    let set = what.set.iter().map(|s| s.split_once('=').ok_or(format!("`{s}`: write PARAM=VALUE")));
    let set: Vec<_> = set.collect::<std::result::Result<_, _>>()?;
    Ok(CongestionControl::new(&what.cc)?.set_all(set)?)
}

fn server_config() -> Result<(ServerConfig, CertificateDer<'static>)> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let der = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((ServerConfig::with_single_cert(vec![der.clone()], key.into())?, der))
}

fn client_config(
    der: CertificateDer<'static>,
    cc: Arc<dyn ControllerFactory + Send + Sync>,
) -> Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der)?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(cc);
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    Ok(config)
}

async fn serve(endpoint: Endpoint) -> Result<()> {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(e) = receive(incoming).await {
                eprintln!("transfer failed: {e}");
            }
        });
    }
    Ok(())
}

/// Receives one file and answers with its hash.
async fn receive(incoming: quinn::Incoming) -> Result<()> {
    let connection = incoming.await?;
    let (mut reply, mut file) = connection.accept_bi().await?;
    let mut hash = Sha256::new();
    while let Some(chunk) = file.read_chunk(usize::MAX, true).await? {
        hash.update(&chunk.bytes);
    }
    reply.write_all(&hash.finalize()).await?;
    reply.finish()?;
    connection.closed().await;
    Ok(())
}

async fn send(server: SocketAddr, der: CertificateDer<'static>, what: &What) -> Result<()> {
    let cc = congestion_control(what)?;
    let local = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut endpoint = Endpoint::client(local.parse()?)?;
    endpoint.set_default_client_config(client_config(der, Arc::new(cc))?);
    let mut source: Box<dyn AsyncRead + Unpin + Send> = match &what.file {
        Some(path) => Box::new(tokio::fs::File::open(path).await?),
        None => Box::new(tokio::io::repeat(0).take(what.mb * 1_000_000)),
    };

    let connection = endpoint.connect(server, NAME)?.await?;
    let watch = tokio::spawn(watch(connection.clone()));
    let start = Instant::now();
    let (mut file, mut reply) = connection.open_bi().await?;
    let (mut hash, mut bytes, mut step) = (Sha256::new(), 0u64, vec![0; STEP]);
    loop {
        let read = source.read(&mut step).await?;
        if read == 0 {
            break;
        }
        hash.update(&step[..read]);
        bytes += read as u64;
        file.write_all(&step[..read]).await?;
    }
    file.finish()?;
    let received = reply.read_to_end(32).await?;
    let seconds = start.elapsed().as_secs_f64();
    watch.abort();
    let path = connection.stats().path;
    println!(
        "{}: {bytes} bytes in {seconds:.3} s, goodput {:.1} Mbit/s, {} of {} packets lost",
        what.cc,
        bytes as f64 * 8e-6 / seconds,
        path.lost_packets,
        path.sent_packets,
    );
    connection.close(0u32.into(), b"done");
    endpoint.wait_idle().await;
    if received[..] != hash.finalize()[..] {
        return Err("the server received something else: SHA-256 differs".into());
    }
    println!("SHA-256 agrees");
    Ok(())
}

/// Shows the connection four times a second.
async fn watch(connection: Connection) {
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    loop {
        ticks.tick().await;
        // A copy of the controller, as the algorithm left it.
        let state = connection.congestion_state().into_any();
        let Ok(cc) = state.downcast::<knee_quic::Controller>() else { continue };
        let path = connection.stats().path;
        println!(
            "RTT {:8.3} ms   cwnd {:6} packets of {} bytes   ssthresh {}",
            path.rtt.as_secs_f64() * 1e3,
            cc.conn().cwnd_pkts,
            path.current_mtu,
            cc.ssthresh_bytes().map_or("none yet".to_owned(), |bytes| format!("{bytes} bytes")),
        );
    }
}
