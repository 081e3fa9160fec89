use super::{Cell, Side, Table};
use crate::view::{BAD, View};

fn table() -> Table {
    let mut table = Table::new([("NAME", Side::Left), ("N", Side::Right)]);
    table.row(["größe".into(), 7.into()]);
    table.row(["a".into(), Cell::new(BAD, "1234")]);
    table
}

#[test]
fn plain_columns_line_up_without_escapes() {
    let plain = table().render(View { json: false, colour: false });
    assert_eq!(plain, "NAME      N\ngröße     7\na      1234\n");
}

#[test]
fn colours_do_not_move_columns() {
    let shown = table().render(View { json: false, colour: true });
    assert!(shown.contains("\u{1b}[") && shown.contains("─────"));
    let mut bare = String::new();
    let mut inside = false;
    for c in shown.chars() {
        match c {
            '\u{1b}' => inside = true,
            'm' if inside => inside = false,
            c if !inside => bare.push(c),
            _ => {}
        }
    }
    assert_eq!(bare.lines().last(), Some("a      1234"));
}
