use fencelock_engine::redis::session;
use fencelock_engine::redis::{Command, Script};

static SCRIPT: Script =
    Script { name: "x", text: "return 1", sha: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" };

#[test]
fn a_script_is_packed_as_the_redis_crate_packs_it() {
    let keys: [&[u8]; 3] = [b"k1", &[0, 255, b'\r', b'\n'], &[b'x'; 1234]];
    let args: [&[u8]; 2] = [b"", b"a"];
    let mut theirs = redis::cmd("EVALSHA");
    theirs.arg(SCRIPT.sha).arg(keys.len());
    for part in keys.iter().chain(&args) {
        theirs.arg(part);
    }
    let mut ours = Vec::new();
    let (keys, args) = (keys.into_iter().collect(), args.into_iter().collect());
    session::command(&mut ours, &Command::Script { script: &SCRIPT, keys, args });
    assert_eq!(ours, theirs.get_packed_command());

    let mut ours = Vec::new();
    session::command(&mut ours, &Command::Plain(vec![b"TIME".to_vec()]));
    assert_eq!(ours, b"*1\r\n$4\r\nTIME\r\n");
}
