//! Eigenvalues and eigenvectors of a small symmetric matrix, by Jacobi's method.

/// Sweeps after which Jacobi's method has long converged (it takes 6 to 10: Golub and Van Loan, Matrix
/// Computations, 4th edition, section 8.5).
const SWEEPS_MAX: usize = 50;

/// A square matrix in rows.
pub(super) type Matrix = Vec<Vec<f64>>;

/// The matrix of that size with a function's values.
pub(super) fn matrix(size: usize, value: impl Fn(usize, usize) -> f64) -> Matrix {
    (0..size).map(|row| (0..size).map(|column| value(row, column)).collect()).collect()
}

/// Eigenvalues of a symmetric matrix and, in the columns of the second, its orthonormal eigenvectors.
pub(super) fn symmetric(mut a: Matrix) -> (Vec<f64>, Matrix) {
    let size = a.len();
    let mut vectors = matrix(size, |row, column| if row == column { 1.0 } else { 0.0 });
    for _ in 0..SWEEPS_MAX {
        let scale: f64 = (0..size).map(|i| a[i][i].powi(2)).sum();
        let off: f64 = pairs(size).map(|(p, q)| a[p][q].powi(2)).sum();
        if off <= f64::EPSILON.powi(2) * scale {
            break;
        }
        for (p, q) in pairs(size) {
            rotate(&mut a, &mut vectors, p, q);
        }
    }
    ((0..size).map(|i| a[i][i]).collect(), vectors)
}

/// All pairs above the diagonal.
fn pairs(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).flat_map(move |p| (p + 1..size).map(move |q| (p, q)))
}

/// The rotation of rows and columns `p` and `q` that makes `a[p][q]` zero.
fn rotate(a: &mut Matrix, vectors: &mut Matrix, p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    for row in a.iter_mut().chain(vectors.iter_mut()) {
        turn(row, p, q, sine, cosine);
    }
    let (upper, lower) = a.split_at_mut(q);
    for (x, y) in upper[p].iter_mut().zip(&mut lower[0]) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
}

/// Turns two coordinates of a row.
fn turn(row: &mut [f64], p: usize, q: usize, sine: f64, cosine: f64) {
    (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;

    #[test]
    fn the_eigenvalues_of_a_known_matrix() {
        // The chain of n equal links has the eigenvalues 2 - 2 cos(k pi / (n + 1)).
        let size = 9;
        let chain = matrix(size, |row, column| match row.abs_diff(column) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        });
        let (mut values, _) = symmetric(chain);
        values.sort_by(f64::total_cmp);
        for (k, value) in values.iter().enumerate() {
            let angle = (k + 1) as f64 * std::f64::consts::PI / (size + 1) as f64;
            assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-13, "{k}: {value}");
        }
    }

    #[test]
    fn random_matrices_are_rebuilt_from_their_parts() {
        for seed in 0..50 {
            let mut random = Draw::new(seed);
            let size = 1 + (random.bits() % 20) as usize;
            let mut a = matrix(size, |_, _| 0.0);
            for (p, q) in pairs(size).chain((0..size).map(|i| (i, i))) {
                a[p][q] = random.normal() * 10f64.powi((random.bits() % 7) as i32 - 3);
                a[q][p] = a[p][q];
            }
            let norm = a.iter().flatten().map(|x| x * x).sum::<f64>().sqrt();
            let (values, vectors) = symmetric(a.clone());
            let sum = |f: &dyn Fn(usize) -> f64| (0..size).map(f).sum::<f64>();
            for row in 0..size {
                for column in 0..size {
                    let rebuilt = sum(&|k| vectors[row][k] * values[k] * vectors[column][k]);
                    assert!((rebuilt - a[row][column]).abs() < 1e-12 * norm, "seed {seed}");
                    let product = sum(&|k| vectors[k][row] * vectors[k][column]);
                    let unit = if row == column { 1.0 } else { 0.0 };
                    assert!((product - unit).abs() < 1e-12, "seed {seed}");
                }
            }
        }
    }
}
