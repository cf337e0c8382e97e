CREATE TABLE articles (id integer PRIMARY KEY, views bigint NOT NULL DEFAULT 0);
