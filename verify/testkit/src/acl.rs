//! The permissions that the documentation tells an operator to give.

/// The command in docs/redis.md that begins with `mark`, word by word, for
/// [`RedisServer::cli`](crate::RedisServer::cli).
///
/// # Panics
/// When the page has no such command.
pub fn documented_acl(mark: &str) -> Vec<String> {
    let page = include_str!("../../../docs/redis.md");
    let start = page.find(mark).expect("the page has this ACL");
    let block = &page[start..start + page[start..].find("```").expect("the block ends")];
    let text = block.replace("\\\n", " ");
    text.split_whitespace().map(str::to_owned).collect()
}

/// The same for a team: what docs/redis.md says to write in the place of the user and the prefix.
///
/// # Panics
/// As [`documented_acl`].
pub fn team_acl(user: &str, prefix: &str) -> Vec<String> {
    let mut words = documented_acl("ACL SETUSER locks on");
    user.clone_into(&mut words[2]);
    words.iter().map(|word| word.replace("fl:", prefix)).collect()
}
