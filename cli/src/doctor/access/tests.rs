use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn who_may_read_and_write_is_said_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("locks.db");
    std::fs::write(&file, "").unwrap();
    let cases = [
        // The file's mode, its directory's, how bad, and what is said of it.
        (0o600, 0o700, Severity::Good, "nobody else may see"),
        (0o600, 0o1777, Severity::Good, "nobody else may see"),
        (0o644, 0o755, Severity::Note, "read the names"),
        (0o660, 0o2770, Severity::Good, "nobody else may see"),
        (0o660, 0o700, Severity::Warning, "shut the others out"),
        (0o666, 0o700, Severity::Warning, "every user of this machine may break locks"),
        (0o600, 0o777, Severity::Warning, "another file in its place"),
    ];
    for (mode, around, severity, meaning) in cases {
        set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        set_permissions(place.path(), Permissions::from_mode(around)).unwrap();
        let finding = finding(&file).unwrap();
        assert_eq!(finding.severity, severity, "{mode:o} {around:o}");
        assert!(finding.meaning.contains(meaning), "{mode:o} {around:o}: {}", finding.meaning);
    }
    set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
    set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let said = finding(&file).unwrap().value;
    for part in ["reads and writes, group ", " reads, others nothing (mode 0640)"] {
        assert!(said.contains(part), "{said}");
    }
    std::fs::write(place.path().join("locks.db-shm"), "").unwrap();
    set_permissions(place.path().join("locks.db-shm"), Permissions::from_mode(0o600)).unwrap();
    assert!(finding(&file).unwrap().meaning.contains("other permissions"));
    assert!(finding(&place.path().join("missing")).is_none());
}
