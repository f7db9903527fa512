//! The test's own hand in a virtual host: a connection beside the source's.

use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions, QueueBindOptions, QueueDeclareOptions},
    types::FieldTable,
};
use oncebox_tests::services::Vhost;

/// A channel for publishing with confirms and for questions.
pub(crate) struct Admin {
    connection: Connection,
    channel: lapin::Channel,
}

impl Admin {
    pub(crate) async fn open(vhost: &Vhost) -> Self {
        let connection = Connection::connect(&vhost.url(), ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        Self { connection, channel }
    }

    /// Publishes persistent messages and waits until the broker has them all.
    pub(crate) async fn publish(&self, queue: &str, bodies: &[impl AsRef<[u8]>], properties: BasicProperties) {
        let mut confirms = Vec::new();
        for body in bodies {
            let properties = properties.clone().with_delivery_mode(2);
            let publish = self.channel.basic_publish(
                "".into(),
                queue.into(),
                BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() },
                body.as_ref(),
                properties,
            );
            confirms.push(publish.await.unwrap());
        }
        for confirm in confirms {
            assert!(matches!(confirm.await.unwrap(), lapin::Confirmation::Ack(None)));
        }
    }

    /// Binds a queue to an exchange.
    pub(crate) async fn bind(&self, queue: &str, exchange: &str) {
        let bound = self.channel.queue_bind(
            queue.into(),
            exchange.into(),
            "".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        );
        bound.await.unwrap();
    }

    /// Messages that wait, and consumers; `None`: there is no such queue.
    pub(crate) async fn look(&self, queue: &str) -> Option<(u32, u32)> {
        let channel = self.connection.create_channel().await.unwrap();
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = channel.queue_declare(queue.into(), passive, FieldTable::default()).await.ok()?;
        let found = (queue.message_count(), queue.consumer_count());
        let _ = channel.close(200, "OK".into()).await;
        Some(found)
    }
}
