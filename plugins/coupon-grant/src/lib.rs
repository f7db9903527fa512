//! Grants a coupon for a paid order: record, coupon and notice together, once for each obligation.
#![forbid(unsafe_code)]

use oncebox_sdk::prelude::*;
use serde::{Deserialize, Serialize};

oncebox_sdk::manifest!();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderPaid {
    schema_version: u32,
    order_id: String,
    campaign_id: String,
    benefit_type: String,
    user_id: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CouponGranted<'a> {
    coupon_id: &'a str,
    user_id: u64,
    title: &'a str,
}

struct CouponGrant;

impl Handler for CouponGrant {
    fn handle(event: &Event) -> Result<Done, Failure> {
        let order: OrderPaid = event.json()?;
        if order.schema_version != 1 {
            let message = format!("schemaVersion is {}, and only 1 is known", order.schema_version);
            return Err(Failure::reject("schema-version", message));
        }
        let campaigns = db::campaign(&order.campaign_id);
        let Some(campaign) = campaigns.first() else {
            // It reaches us by a way of its own and may come after the order: later attempts find it.
            return Err(Failure::retry(format!("campaign {} is not here yet", order.campaign_id)));
        };
        let title: String = campaign.get("title")?;
        let face_cents: i64 = campaign.get("face_cents")?;

        // The same at every attempt, and no one can guess it.
        let coupon_id = context::random_hex(16);
        let OrderPaid { order_id, campaign_id, benefit_type, user_id, .. } = &order;
        db::record_grant(order_id, campaign_id, benefit_type, *user_id, &coupon_id, &event.id);
        db::add_coupon(&coupon_id, *user_id, &title, face_cents);

        let granted = CouponGranted { coupon_id: &coupon_id, user_id: *user_id, title: &title };
        events::coupon_granted().json("coupon.granted", &granted)?.subject(&coupon_id).emit();
        Ok(Done::applied().with_result(coupon_id))
    }
}

oncebox_sdk::export!(CouponGrant);

#[cfg(test)]
mod tests {
    use oncebox_sdk::testing::Host;

    use super::*;

    fn paid(schema_version: u32) -> Event {
        let payload = format!(
            r#"{{"schemaVersion": {schema_version}, "orderId": "O-1001", "campaignId": "C-9", "benefitType": "gift", "userId": 7}}"#
        );
        Event::test("order.paid", &payload)
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    #[test]
    fn a_grant_records_adds_and_announces_one_coupon_and_keeps_its_id() {
        let campaign = vec![[text("Tea for two"), Value::Signed(1_500)]];
        let run = Host::new().rows("campaign", ["title", "face_cents"], campaign).run::<CouponGrant>(&paid(1));
        let id = "000102030405060708090a0b0c0d0e0f";
        assert_eq!(run.outcome, Ok(Done::applied().with_result(id)));
        let record = vec![text("O-1001"), text("C-9"), text("gift"), Value::Unsigned(7), text(id), text("test")];
        let coupon = vec![text(id), Value::Unsigned(7), text("Tea for two"), Value::Signed(1_500)];
        assert_eq!(run.staged, [("record-grant".to_owned(), record), ("add-coupon".to_owned(), coupon)]);
        assert_eq!(run.emitted.len(), 1);
    }

    #[test]
    fn an_order_ahead_of_its_campaign_waits_and_one_of_another_schema_does_not() {
        let run = Host::new().run::<CouponGrant>(&paid(1));
        assert_eq!((run.outcome, run.staged), (Err(Failure::retry("campaign C-9 is not here yet")), vec![]));
        let run = Host::new().run::<CouponGrant>(&paid(2));
        assert_eq!(run.outcome, Err(Failure::reject("schema-version", "schemaVersion is 2, and only 1 is known")));
    }
}
