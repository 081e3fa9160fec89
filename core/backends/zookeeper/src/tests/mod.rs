mod survey;
mod url;
