//! TLS of a run: one certificate, made once and the same on every machine.

use knee_model::{HostError, failure::broken};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::Resumption,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    version::TLS13,
};
use std::{fmt::Display, sync::Arc};

/// Name of every server.
pub(crate) const SERVER_NAME: &str = "knee";

/// An Ed25519 key in PKCS #8 (RFC 8410 section 7). It protects nothing: both ends are the run's own.
/// A fixed key of this kind gives certificates and signatures of a fixed size, and with them
/// handshakes of a fixed size.
const KEY: [u8; 48] = {
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let mut key = [0x6b; 48];
    let mut i = 0;
    while i < prefix.len() {
        key[i] = prefix[i];
        i += 1;
    }
    key
};

/// Both ends' configurations. No session is resumed: a handshake must not depend on other connections.
pub(crate) struct Tls {
    pub client: Arc<QuicClientConfig>,
    pub server: Arc<QuicServerConfig>,
}

impl Tls {
    pub(crate) fn new() -> Result<Self, HostError> {
        let tls = |what: &dyn Display| broken(format!("cannot set up TLS: {what}"));
        let key = PrivatePkcs8KeyDer::from(KEY.to_vec());
        let pair =
            KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519).map_err(|e| tls(&e))?;
        let certificate = CertificateParams::new([SERVER_NAME.to_owned()])
            .and_then(|params| params.self_signed(&pair))
            .map_err(|e| tls(&e))?;
        let certificate: CertificateDer<'static> = certificate.into();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(|e| tls(&e))?;
        let provider = Arc::new(default_provider());
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| tls(&e))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.resumption = Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| tls(&e))?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .map_err(|e| tls(&e))?;
        server.send_tls13_tickets = 0;
        Ok(Self {
            client: Arc::new(QuicClientConfig::try_from(client).map_err(|e| tls(&e))?),
            server: Arc::new(QuicServerConfig::try_from(server).map_err(|e| tls(&e))?),
        })
    }
}
