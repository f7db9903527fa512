//! Why a source does not hand over what its broker has.

use crate::code::codes;

/// Why a broker's queue is not consumed. All of it is tried again until somebody has mended it or the host stops.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The password of the connection cannot be had.
    #[error("failed to get the password of connection `{connection}`: {reason}")]
    Password {
        /// The connection's name.
        connection: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of the connection's TLS cannot be used.
    #[error("failed to use {setting} = {path:?} of connection `{connection}`: {reason}")]
    Tls {
        /// The connection's name.
        connection: String,
        /// The key of the configuration.
        setting: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers at the address, or not as a broker would.
    #[error("failed to connect to {address} of connection `{connection}`: {reason}")]
    Unreachable {
        /// The connection's name.
        connection: String,
        /// Host and port.
        address: String,
        /// The library's words.
        reason: String,
    },
    /// The broker is there and says nothing.
    #[error("failed to {what} at {address} of connection `{connection}`: no answer in {seconds} s")]
    NoAnswer {
        /// The connection's name.
        connection: String,
        /// Host and port.
        address: String,
        /// What was asked.
        what: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// Wrong user or password.
    #[error(
        "failed to log in at {address} as `{user}` (connection `{connection}`): {reason}; check user and password of the \
         connection"
    )]
    LoginRefused {
        /// The connection's name.
        connection: String,
        /// Host and port.
        address: String,
        /// Who.
        user: String,
        /// The broker's words.
        reason: String,
    },
    /// The virtual host is not there, or not for this user.
    #[error(
        "failed to open virtual host `{vhost}` at {address} as `{user}` (connection `{connection}`): {reason}; make it with \
         `rabbitmqctl add_vhost`, and let the user in with `rabbitmqctl set_permissions -p`"
    )]
    VhostRefused {
        /// The connection's name.
        connection: String,
        /// Host and port.
        address: String,
        /// Who.
        user: String,
        /// The virtual host.
        vhost: String,
        /// The broker's words.
        reason: String,
    },
    /// The queue is not there.
    #[error(
        "failed to find queue `{queue}` in virtual host `{vhost}`; make it with `rabbitmqadmin --vhost {vhost} queues \
         declare --name {queue} --type quorum --durable true{single_active}`, or say declare = \"quorum\""
    )]
    QueueMissing {
        /// The queue.
        queue: String,
        /// The virtual host.
        vhost: String,
        /// One more argument that it needs, or nothing.
        single_active: &'static str,
    },
    /// The queue is there and is another one than `declare` would make.
    #[error(
        "failed to declare queue `{queue}` as {declared}: {difference}; leave declare = \"passive\", or delete the queue so \
         that it can be made anew"
    )]
    QueueDiffers {
        /// The queue.
        queue: String,
        /// As what.
        declared: String,
        /// In what it differs.
        difference: String,
    },
    /// The broker does not let this user at the queue, or the queue is in somebody else's exclusive use, or down.
    #[error("failed to {what} queue `{queue}`: {reason}")]
    QueueRefused {
        /// The queue.
        queue: String,
        /// What was asked.
        what: &'static str,
        /// The broker's words.
        reason: String,
    },
    /// A handler asks for order, and the queue would give its messages to several consumers at once.
    #[error(
        "failed to keep the order of queue `{queue}`: a handler of this source asks for order, and the queue has no single \
         active consumer; delete it and declare it with \"x-single-active-consumer\": true (declare = \"quorum\" does), or \
         take the ordering away"
    )]
    NotSingleActive {
        /// The queue.
        queue: String,
    },
    /// Whether it would cannot be found out.
    #[error(
        "failed to find out whether queue `{queue}` has a single active consumer, which its handlers' ordering needs: \
         {reason}; give the user the permission to configure the queue"
    )]
    OrderUnknown {
        /// The queue.
        queue: String,
        /// Why not.
        reason: String,
    },
    /// The broker has cancelled the consumer.
    #[error(
        "failed to go on with queue `{queue}`: the broker cancelled the consumer; either the queue was deleted, or a \
         delivery was not settled within its consumer timeout (x-consumer-timeout or consumer_timeout, 30 min unless set): \
         then runs or the database are slow, and a smaller prefetch or a longer timeout helps"
    )]
    Cancelled {
        /// The queue.
        queue: String,
    },
    /// Connection or channel are gone.
    #[error("failed to go on with queue `{queue}`: {reason}")]
    Lost {
        /// The queue.
        queue: String,
        /// The library's words.
        reason: String,
    },
    /// The broker writes nothing of ours.
    #[error("failed to settle at {address} (connection `{connection}`): the broker blocks the connection: {reason}")]
    Blocked {
        /// The connection's name.
        connection: String,
        /// Host and port.
        address: String,
        /// The broker's words.
        reason: String,
    },
}

codes! {
    SourceError {
        Password "source-password" Config
            "the password of a broker's connection cannot be had"
            "set the variable or write the file that the connection's password names"
        Tls "source-tls" Config
            "a TLS file of a broker's connection cannot be used"
            "give PEM files that the host may read; certificate and key belong together"
        Unreachable "broker-unreachable" Away
            "no broker answers at the connection's address"
            "start it, or correct the address; for TLS see that the certificate names the host and its authority is known"
        NoAnswer "broker-silent" Away
            "the broker takes the connection and does not answer"
            "see the broker's log; it is tried again"
        LoginRefused "broker-login" Config
            "the broker does not take user and password"
            "correct user and password of the connection"
        VhostRefused "broker-vhost" Config
            "the virtual host is not there, or not for this user"
            "make it, let the user in, or correct the path of the connection's url (none for `/`)"
        QueueMissing "queue-missing" NotFound
            "the queue is not there"
            "make it, or say declare = \"quorum\" at the source"
        QueueDiffers "queue-differs" Config
            "the queue is another one than declare would make"
            "say declare = \"passive\", or delete the queue"
        QueueRefused "queue-refused" Away
            "the broker does not let this host consume the queue now"
            "see the broker's words: permissions, somebody's exclusive use, or a node that is down"
        NotSingleActive "queue-not-single-active" Config
            "a handler asks for order, and the queue serves several consumers at once"
            "declare the queue with x-single-active-consumer, or take the ordering away"
        OrderUnknown "queue-order-unknown" Config
            "a handler asks for order, and what the queue promises cannot be found out"
            "give the user of the connection the permission to configure the queue"
        Cancelled "consumer-cancelled" Away
            "the broker has cancelled the consumer"
            "nothing: it is subscribed again; if it comes again, see the consumer timeout and the prefetch"
        Lost "broker-lost" Away
            "connection or channel are gone; what was not settled comes again and is found to be a duplicate"
            "nothing: it is connected again; if it comes again, see the broker's log"
        Blocked "broker-blocked" Away
            "the broker has raised an alarm and takes nothing from this connection"
            "give the broker memory or disk; what is settled meanwhile is sent then"
    }
}
