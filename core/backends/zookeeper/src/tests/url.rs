use fencelock_engine::ErrorKind;
use fencelock_engine::zookeeper::Recipe;

use crate::options::{Acl, Options};

#[test]
fn servers_chroot_login_and_options_are_read() {
    let options = Options::from_url(
        "zk://app:s%40l:t@h1,h2:2182,[::1]:2183/apps/my%20shop?recipe=simple&acl=creator",
    )
    .unwrap();
    assert_eq!(options.servers, ["h1:2181", "h2:2182", "[::1]:2183"]);
    assert_eq!(options.chroot, "/apps/my shop");
    let login = options.login.clone().unwrap();
    assert_eq!((login.user.as_str(), login.password.as_str()), ("app", "s@l:t"));
    assert_eq!((options.recipe, options.acl), (Recipe::Simple, Acl::Creator));
    assert!(!format!("{options:?}").contains("s@l:t"), "a password is never shown");
}

#[test]
fn the_least_is_a_host() {
    for url in ["zk://h", "zk://h/", "zk://h:2181"] {
        let options = Options::from_url(url).unwrap();
        assert_eq!((options.servers[0].as_str(), options.chroot.as_str()), ("h:2181", ""));
        assert_eq!((options.recipe, options.acl), (Recipe::Queue, Acl::Open));
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    for (url, word) in [
        ("zk://", "servers"),
        ("zk://h1,,h2", "servers"),
        ("zk://h:0", "servers"),
        ("zk://h:port", "servers"),
        ("zk://::1", "servers"),
        ("zk://user@h", "user:password"),
        ("zk://:p@h", "user"),
        ("zk://h//a", "empty part"),
        ("zk://h/a/../b", "'..'"),
        ("zk://h/zookeeper/x", "own"),
        ("zk://h?recipe=fair", "recipe"),
        ("zk://h?acl=creator", "login"),
        ("zk://h?acl=none", "acl"),
        ("zk://h?auth=kerberos", "auth"),
        ("zk://h?auth=sasl", "login"),
        ("zk://h?tls_ca=x.pem", "zks://"),
        ("zks://h", "tls_ca=FILE"),
        ("zks://h?tls_ca=a&tls_cert=b", "belong together"),
        ("zk://h?timeout=3", "unknown option"),
        ("zk://h/%4", "hexadecimal"),
    ] {
        let error = Options::from_url(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}");
        assert!(error.message().contains(word), "{url}: {error}");
    }
}

#[test]
#[cfg(not(any(feature = "tls", feature = "sasl")))]
fn what_a_feature_would_bring_is_named_with_it() {
    for (url, feature) in [
        ("zks://h?tls_ca=x.pem", "zookeeper-tls"),
        ("zk://user:password@h?auth=sasl", "zookeeper-sasl"),
    ] {
        let error = Options::from_url(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{url}");
        assert!(error.message().contains(feature), "{url}: {error}");
    }
}

#[test]
#[cfg(feature = "sasl")]
fn a_name_that_sasl_cannot_carry_is_refused() {
    let options = Options::from_url("zk://user:password@h?auth=sasl").unwrap();
    assert_eq!(options.auth, crate::options::Auth::Sasl);
    for user in ["a%22b", "a%5Cb"] {
        let error = Options::from_url(&format!("zk://{user}:p@h?auth=sasl")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
