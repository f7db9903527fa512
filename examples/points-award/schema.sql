-- The business's own tables. The host adds its `ob_*` tables beside them, in the same file and the same transactions.

CREATE TABLE points_account (
  user_id INTEGER PRIMARY KEY,
  points INTEGER NOT NULL
) STRICT;

CREATE TABLE points_ledger (
  receipt_no TEXT PRIMARY KEY,
  order_id INTEGER NOT NULL,
  user_id INTEGER NOT NULL,
  points INTEGER NOT NULL
) STRICT;

CREATE TABLE member_level (
  user_id INTEGER PRIMARY KEY,
  level INTEGER NOT NULL,
  version INTEGER NOT NULL
) STRICT;

INSERT INTO points_account (user_id, points) VALUES (7, 0), (9, 0);
INSERT INTO member_level (user_id, level, version) VALUES (7, 0, 0), (9, 0, 0);
