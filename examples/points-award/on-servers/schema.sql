-- The business's own tables, as on the embedded store.

CREATE TABLE points_account (
  user_id BIGINT UNSIGNED PRIMARY KEY,
  points BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE points_ledger (
  receipt_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  user_id BIGINT UNSIGNED NOT NULL,
  points BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE member_level (
  user_id BIGINT UNSIGNED PRIMARY KEY,
  level INT NOT NULL,
  version BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB;

INSERT INTO points_account (user_id, points) VALUES (7, 0), (9, 0);
INSERT INTO member_level (user_id, level, version) VALUES (7, 0, 0), (9, 0, 0);
