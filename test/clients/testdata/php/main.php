<?php
// php main.php FOLDER-OF-THE-HELPER phpredis|predis HOST:PORT MODE …
error_reporting(E_ALL & ~E_DEPRECATED); // of Predis 1 under PHP 8
[, $helper, $client, $addr, $mode] = $argv;
require "$helper/changed.php";

[$host, $port] = explode(':', $addr);
if ($client === 'predis') {
    require 'Predis/autoload.php';
    $redis = new Predis\Client(['host' => $host, 'port' => $port]);
} else {
    $redis = new Redis();
    $redis->connect($host, (int) $port);
}

$save = fn ($id, $fields) => changed\save($redis, "user:$id", $fields, 'changed:user', $id);

$attempt = function (callable $call): void {
    try {
        $call();
        echo "ok\n";
    } catch (Exception $e) {
        echo 'error ', $e->getMessage(), "\n";
    }
};

switch ($mode) {
case 'each':
    $save('ä 1', ['n' => 7]);
    changed\remove($redis, 'user:2', 'changed:user', '2');
    changed\count($redis, 'hits:home', 2, 'changed:hits', 'home');
    changed\countField($redis, 'views', 16, '123456789', 3);
    changed\change($redis, 'changed:board', ['a', 'b'], fn ($send) => $send('ZADD', 'board', '1', 'a', '2', 'b'), scored: true);
    break;
case 'work':
    [$worker, $n] = [(int) $argv[5], (int) $argv[6]];
    for ($i = 0; $i < $n; $i++) {
        $id = $worker * 1000 + $i % 50;
        if ($i % 7 === 6) {
            changed\remove($redis, "user:$id", 'changed:user', $id);
        } else {
            $save($id, ['n' => $i]);
        }
        $page = $i % 10;
        changed\count($redis, "hits:$page", 1, 'changed:hits', $page);
        changed\countField($redis, 'views', 16, $page, 1);
        echo "$i\n";
    }
    break;
case 'lost':
    $attempt(fn () => changed\count($redis, 'hits:lost', 1, 'changed:hits', 'lost'));
    break;
case 'lost-field':
    $attempt(fn () => changed\countField($redis, 'views', 1, 'lost', 1));
    break;
case 'refused':
    $attempt(fn () => $save('1', ['n' => 1]));
    changed\countField($redis, 'views', 16, '1', 1); // the connection is fit for more
    break;
case 'null':
    $attempt(fn () => $save('1', ['n' => null]));
    break;
}
