//! Certificates, and what is wrong with them.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use fencelock_engine::redis::session::NoSession;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::options::Tls;
use crate::quiet::Quiet;

/// Does the TLS handshake over `stream`.
pub(crate) async fn wrap(
    tls: &Tls,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<Quiet>, NoSession> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        NoSession::misconfigured(format!("'{host}' is not a name that a certificate can carry"))
    })?;
    let config = config(tls)?;
    TlsConnector::from(Arc::new(config))
        .connect(name, Quiet(stream))
        .await
        .map_err(|error| explain(&error).unwrap_or_else(|| NoSession::Later(error.to_string())))
}

/// What an error of a TLS connection means, when it is about certificates: some servers refuse a
/// client's certificate only after the handshake.
pub(crate) fn explain(error: &io::Error) -> Option<NoSession> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let advice = match inner {
        rustls::Error::InvalidCertificate(_) => {
            "the server's certificate is not trusted: give its authority's file as tls_ca, and \
             connect by the name that the certificate carries"
        }
        rustls::Error::AlertReceived(_) => {
            "the server refused the connection: give the client certificate it wants as tls_cert \
             and tls_key"
        }
        rustls::Error::InvalidMessage(_) => {
            "the server does not speak TLS on this port: use its TLS port, or redis://"
        }
        _ => return None,
    };
    Some(NoSession::misconfigured(format!("TLS: {advice} ({inner})")))
}

fn config(tls: &Tls) -> Result<ClientConfig, NoSession> {
    let roots = match &tls.ca {
        Some(path) => own_roots(path)?,
        None => system_roots()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| NoSession::misconfigured(format!("TLS: {error}")))?
        .with_root_certificates(roots);
    let (Some(cert), Some(key)) = (&tls.cert, &tls.key) else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(cert, "tls_cert")?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        unreadable("tls_key", key, &error, "give the unencrypted private key as a PEM file")
    })?;
    builder.with_client_auth_cert(chain, key).map_err(|error| {
        NoSession::misconfigured(format!(
            "TLS: tls_cert and tls_key do not go together ({error}): give the key that the \
             certificate was made for"
        ))
    })
}

fn own_roots(path: &Path) -> Result<RootCertStore, NoSession> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, "tls_ca")? {
        roots.add(certificate).map_err(|error| {
            NoSession::misconfigured(format!(
                "TLS: {} (tls_ca) holds a certificate that cannot be used: {error}",
                path.display()
            ))
        })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, NoSession> {
    // Reading the system's store takes milliseconds: once is enough.
    static SYSTEM: OnceLock<RootCertStore> = OnceLock::new();
    let roots = SYSTEM.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    });
    if roots.is_empty() {
        return Err(NoSession::misconfigured(
            "TLS: this system has no trusted certificates: install its ca-certificates package, \
             or give the authority's file as tls_ca",
        ));
    }
    Ok(roots.clone())
}

fn certificates(path: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, NoSession> {
    let advice = "give a PEM file with at least one certificate";
    let read = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(option, path, &error, advice))?;
    if read.is_empty() {
        return Err(unreadable(option, path, &"it holds no certificate", advice));
    }
    Ok(read)
}

fn unreadable(option: &str, path: &Path, error: &dyn std::fmt::Display, advice: &str) -> NoSession {
    NoSession::misconfigured(format!(
        "TLS: {} ({option}) cannot be read ({error}): {advice}",
        path.display()
    ))
}
