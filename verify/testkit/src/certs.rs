//! An authority, a server's certificate and a client's, made afresh.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Files of an authority, of a server's certificate for `localhost` and 127.0.0.1, and of a
/// client's.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority that signed both.
    pub ca: PathBuf,
    /// The server's certificate.
    pub server_cert: PathBuf,
    /// The server's key.
    pub server_key: PathBuf,
    /// The client's certificate.
    pub client_cert: PathBuf,
    /// The client's key.
    pub client_key: PathBuf,
}

impl Certificates {
    /// Makes them in `folder`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn make(folder: &Path) -> io::Result<Certificates> {
        let files = Certificates {
            ca: folder.join("ca.pem"),
            server_cert: folder.join("server.pem"),
            server_key: folder.join("server.key"),
            client_cert: folder.join("client.pem"),
            client_key: folder.join("client.key"),
        };
        files.write().map_err(io::Error::other)?;
        Ok(files)
    }

    fn write(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Fencelock test authority");
        fs::write(&self.ca, params.self_signed(&key)?.pem())?;
        let issuer = Issuer::new(params, key);
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        for (names, cert, file) in [
            (names, &self.server_cert, &self.server_key),
            (vec!["client".to_owned()], &self.client_cert, &self.client_key),
        ] {
            let key = KeyPair::generate()?;
            let signed = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
            fs::write(cert, signed.pem())?;
            fs::write(file, key.serialize_pem())?;
        }
        Ok(())
    }
}
