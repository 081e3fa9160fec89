mod doubts;
mod panics;
mod survey;
mod url;
mod watches;
