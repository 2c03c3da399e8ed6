//! Tiled Cholesky factorisation: tasks with dependences between tiles, for any task policy.

mod common;

use std::process::ExitCode;

use ampsched_model::Draw;
use ampsched_taskrt::{Datum, Scope};

/// Rows of a tile: three tiles fit into a level-1 cache of 32 KiB with this many.
const TILE: usize = 32;

type Tile = Vec<f64>;

/// A lower triangle of tiles, row by row.
struct Tiles {
    tiles: Vec<Datum<Tile>>,
}

impl Tiles {
    fn at(&self, row: usize, column: usize) -> &Datum<Tile> {
        &self.tiles[row * (row + 1) / 2 + column]
    }
}

/// A symmetric matrix with a dominant diagonal, so positive definite.
fn matrix(rows: usize) -> Vec<f64> {
    let mut random = Draw::new(7);
    let mut values = vec![0.0; rows * rows];
    for row in 0..rows {
        for column in 0..=row {
            let value = random.uniform() - 0.5;
            values[row * rows + column] = value;
            values[column * rows + row] = value;
        }
        values[row * rows + row] = rows as f64;
    }
    values
}

fn tiled(matrix: &[f64], count: usize) -> Tiles {
    let rows = count * TILE;
    let mut tiles = Vec::new();
    for row in 0..count {
        for column in 0..=row {
            let value = |place: usize| {
                let (i, j) = (row * TILE + place / TILE, column * TILE + place % TILE);
                matrix[i * rows + j]
            };
            tiles.push(Datum::new((0..TILE * TILE).map(value).collect()));
        }
    }
    Tiles { tiles }
}

/// Factorises a diagonal tile.
fn potrf(a: &mut [f64]) {
    for j in 0..TILE {
        let square: f64 = (0..j).map(|k| a[j * TILE + k] * a[j * TILE + k]).sum();
        a[j * TILE + j] = (a[j * TILE + j] - square).sqrt();
        for i in j + 1..TILE {
            let dot: f64 = (0..j).map(|k| a[i * TILE + k] * a[j * TILE + k]).sum();
            a[i * TILE + j] = (a[i * TILE + j] - dot) / a[j * TILE + j];
        }
        a[j * TILE + j + 1..(j + 1) * TILE].fill(0.0);
    }
}

/// b = b / transpose(l)
fn trsm(l: &[f64], b: &mut [f64]) {
    for row in b.chunks_exact_mut(TILE) {
        for j in 0..TILE {
            let dot: f64 = (0..j).map(|k| row[k] * l[j * TILE + k]).sum();
            row[j] = (row[j] - dot) / l[j * TILE + j];
        }
    }
}

/// c = c - a transpose(b)
fn gemm(a: &[f64], b: &[f64], c: &mut [f64]) {
    for (i, row) in c.chunks_exact_mut(TILE).enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            let (a, b) = (&a[i * TILE..(i + 1) * TILE], &b[j * TILE..(j + 1) * TILE]);
            *value -= a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        }
    }
}

fn create<'scope>(scope: &'scope Scope<'scope, '_>, tiles: &'scope Tiles, count: usize) {
    for k in 0..count {
        let diagonal = tiles.at(k, k);
        scope.task("potrf").writes(diagonal).run(|| potrf(&mut diagonal.write()));
        for i in k + 1..count {
            let below = tiles.at(i, k);
            let new = scope.task("trsm").reads(diagonal).writes(below);
            new.run(|| trsm(&diagonal.read(), &mut below.write()));
        }
        for i in k + 1..count {
            for j in k + 1..=i {
                let (left, upper, target) = (tiles.at(i, k), tiles.at(j, k), tiles.at(i, j));
                let kind = if i == j { "syrk" } else { "gemm" };
                let new = scope.task(kind).reads(left).reads(upper).writes(target);
                new.run(|| gemm(&left.read(), &upper.read(), &mut target.write()));
            }
        }
    }
}

fn factorised(tiles: &Tiles, count: usize) {
    for k in 0..count {
        potrf(&mut tiles.at(k, k).write());
        for i in k + 1..count {
            trsm(&tiles.at(k, k).read(), &mut tiles.at(i, k).write());
        }
        for i in k + 1..count {
            for j in k + 1..=i {
                let target = &mut tiles.at(i, j).write();
                gemm(&tiles.at(i, k).read(), &tiles.at(j, k).read(), target);
            }
        }
    }
}

/// Largest difference between the matrix and the product of the factor with its transpose.
fn residual(matrix: &[f64], tiles: &Tiles, count: usize) -> f64 {
    let rows = count * TILE;
    let mut factor = vec![0.0; rows * rows];
    for row in 0..count {
        for column in 0..=row {
            for (place, value) in tiles.at(row, column).read().iter().enumerate() {
                let (i, j) = (row * TILE + place / TILE, column * TILE + place % TILE);
                factor[i * rows + j] = *value;
            }
        }
    }
    let mut worst = 0.0_f64;
    for i in 0..rows {
        for j in 0..=i {
            let (a, b) = (&factor[i * rows..][..rows], &factor[j * rows..][..rows]);
            let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            worst = worst.max((matrix[i * rows + j] - product).abs());
        }
    }
    worst
}

fn main() -> ExitCode {
    common::main("cholesky", 1024, |example| {
        let count = example.size.div_ceil(TILE);
        let matrix = matrix(count * TILE);
        let (expected, tiles) = example.compare(
            || {
                let tiles = tiled(&matrix, count);
                factorised(&tiles, count);
                tiles
            },
            |runtime| {
                let tiles = tiled(&matrix, count);
                runtime.graph(|scope| create(scope, &tiles, count))?;
                Ok(tiles)
            },
        )?;
        for (one, all) in expected.tiles.iter().zip(&tiles.tiles) {
            assert!(*one.read() == *all.read(), "the same factor");
        }
        let worst = residual(&matrix, &tiles, count);
        println!("{} rows, largest residual {worst:.2e}", count * TILE);
        assert!(worst < 1e-9 * (count * TILE) as f64);
        Ok(())
    })
}
