-- The business's own tables, as on the embedded store. Ids are compared byte by byte, as SQLite does.

CREATE TABLE campaign (
  campaign_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  title VARCHAR(255) NOT NULL,
  face_cents BIGINT NOT NULL
) ENGINE = InnoDB;

-- "What was granted": the books to hold against "what is owed".
CREATE TABLE grant_record (
  order_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  campaign_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  benefit_type VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id BIGINT UNSIGNED NOT NULL,
  coupon_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
  event_id VARCHAR(255) NOT NULL,
  PRIMARY KEY (order_id, campaign_id, benefit_type)
) ENGINE = InnoDB;

CREATE TABLE coupon (
  coupon_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  user_id BIGINT UNSIGNED NOT NULL,
  title VARCHAR(255) NOT NULL,
  face_cents BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE notice (
  coupon_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  user_id BIGINT UNSIGNED NOT NULL,
  body VARCHAR(1024) NOT NULL
) ENGINE = InnoDB;

INSERT INTO campaign (campaign_id, title, face_cents) VALUES ('C-9', 'Tea for two', 1500);
