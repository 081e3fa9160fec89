mod panics;
mod survey;
mod url;
mod watches;
