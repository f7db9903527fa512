//! Adds points for a paid order: an account, a ledger line and an event, once for each order.
#![forbid(unsafe_code)]

use oncebox_sdk::prelude::*;
use serde::{Deserialize, Serialize};

oncebox_sdk::manifest!();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderPaid {
    order_id: u64,
    user_id: u64,
    /// Whole yuan.
    amount: i64,
    receipt_no: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PointsAwarded {
    order_id: u64,
    user_id: u64,
    points: i64,
}

struct PointsAward;

impl Handler for PointsAward {
    fn handle(event: &Event) -> Result<Done, Failure> {
        let order: OrderPaid = event.json()?;
        let points = points_for(order.amount)?;

        db::award(points, order.user_id);
        db::record(&order.receipt_no, order.order_id, order.user_id, points);

        let awarded = PointsAwarded { order_id: order.order_id, user_id: order.user_id, points };
        events::points_awarded().json("points.awarded", &awarded)?.emit();
        log::debug!(order = order.order_id, user = order.user_id; "awarded {points} points");
        Ok(Done::applied())
    }
}

/// The event is not to blame for a setting, so it waits until the setting is mended.
fn points_for(amount: i64) -> Result<i64, Failure> {
    let rate = config::points_per_yuan();
    let rate: i64 = rate.parse().map_err(|_| Failure::retry(format!("points_per_yuan is `{rate}`, not a number")))?;
    amount
        .checked_mul(rate)
        .filter(|points| *points > 0)
        .ok_or_else(|| Failure::reject("bad-amount", format!("{amount} yuan give no points")))
}

oncebox_sdk::export!(PointsAward);

#[cfg(test)]
mod tests {
    use oncebox_sdk::testing::Host;

    use super::*;

    const PAID: &str = r#"{"orderId": 42, "userId": 7, "amount": 10, "receiptNo": "R-1"}"#;

    #[test]
    fn a_paid_order_awards_records_and_announces_its_points() {
        let run = Host::new().config("points_per_yuan", "2").run::<PointsAward>(&Event::test("order.paid", PAID));
        assert_eq!(run.outcome, Ok(Done::applied()));
        assert_eq!(
            run.staged,
            [
                ("award".to_owned(), vec![Value::Signed(20), Value::Unsigned(7)]),
                (
                    "record".to_owned(),
                    vec![Value::Text("R-1".to_owned()), Value::Unsigned(42), Value::Unsigned(7), Value::Signed(20)]
                ),
            ]
        );
        let [(destination, awarded)] = run.emitted.as_slice() else { panic!("{:?}", run.emitted) };
        assert_eq!((destination.as_str(), awarded.event_type.as_str()), ("points-awarded", "points.awarded"));
        assert_eq!(awarded.payload, br#"{"orderId":42,"userId":7,"points":20}"#);
    }

    #[test]
    fn a_wrong_setting_waits_and_a_wrong_payload_does_not() {
        let outcome = |rate: &str, payload: &str| {
            Host::new().config("points_per_yuan", rate).run::<PointsAward>(&Event::test("order.paid", payload)).outcome
        };
        assert_eq!(outcome("two", PAID), Err(Failure::retry("points_per_yuan is `two`, not a number")));
        let Err(Failure::Reject(rejection)) = outcome("2", "{}") else {
            panic!("a payload without an order was taken")
        };
        assert_eq!(rejection.code, "bad-payload");
    }
}
