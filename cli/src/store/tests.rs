use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{file, make_private, shown};

#[test]
fn passwords_are_not_shown() {
    let text = shown("redis://bob:secret@host:6379/1").unwrap();
    assert!(text.contains("host:6379/1") && !text.contains("secret"), "{text}");
    assert_eq!(shown("sqlite:/a/b@c").unwrap(), "sqlite:/a/b@c");
    assert!(shown("nonsense").is_err());
}

#[test]
fn the_file_is_read_from_the_url() {
    assert_eq!(file("sqlite:///a/b%3Fc?busy_timeout=1s").as_deref(), Some(Path::new("/a/b?c")));
    assert_eq!(file("sqlite:a/b").as_deref(), Some(Path::new("a/b")));
    assert_eq!(file("memory:"), None);
}

#[test]
fn only_a_private_directory_is_used() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("own");
    make_private(&directory).unwrap();
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    make_private(&directory).unwrap();

    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(make_private(&directory).is_err());

    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    assert!(make_private(&link).is_err());
}
