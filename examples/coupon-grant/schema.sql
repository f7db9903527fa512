-- The business's own tables. The host adds its `ob_*` tables beside them, in the same file and the same transactions.

CREATE TABLE campaign (
  campaign_id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  face_cents INTEGER NOT NULL
) STRICT;

-- "What was granted": the books to hold against "what is owed".
CREATE TABLE grant_record (
  order_id TEXT NOT NULL,
  campaign_id TEXT NOT NULL,
  benefit_type TEXT NOT NULL,
  user_id INTEGER NOT NULL,
  coupon_id TEXT NOT NULL UNIQUE,
  event_id TEXT NOT NULL,
  PRIMARY KEY (order_id, campaign_id, benefit_type)
) STRICT;

CREATE TABLE coupon (
  coupon_id TEXT PRIMARY KEY,
  user_id INTEGER NOT NULL,
  title TEXT NOT NULL,
  face_cents INTEGER NOT NULL
) STRICT;

CREATE TABLE notice (
  coupon_id TEXT PRIMARY KEY,
  user_id INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

INSERT INTO campaign (campaign_id, title, face_cents) VALUES ('C-9', 'Tea for two', 1500);
