//! TLS to the servers.

use std::fs;
use std::path::Path;

use zookeeper_client as zk;

use crate::options::Tls;

/// Reads the files anew at each connect: certificates are renewed.
pub(crate) fn options(tls: &Tls) -> Result<zk::TlsOptions, zk::Error> {
    // Two libraries are linked, and rustls does not choose by itself. Whoever chose before wins.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = zk::TlsCa::from_pem(&read(&tls.ca)?)?;
    let mut certs = zk::TlsCerts::builder().with_ca(ca);
    if let Some((cert, key)) = &tls.identity {
        certs = certs.with_identity(zk::TlsIdentity::from_pem(&read(cert)?, &read(key)?)?);
    }
    Ok(zk::TlsOptions::new().with_certs(certs.build()?))
}

fn read(path: &Path) -> Result<String, zk::Error> {
    fs::read_to_string(path)
        .map_err(|error| zk::Error::UnexpectedError(format!("{}: {error}", path.display())))
}
